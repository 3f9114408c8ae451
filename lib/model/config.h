// SPDX-License-Identifier: MIT
// Reading a configuration: typed keys with their ranges and defaults.  Every failure is ERR_FORMAT
// and names the key.
//
// Each read is noted in a list, so that the list of an architecture's keys is what its configure
// function reads and nothing else.  A configuration without an object is explored: every read
// succeeds with a default or the smallest value, see attncl__arch_keys() in arch.h.
#ifndef ATTNCL_MODEL_CONFIG_H
#define ATTNCL_MODEL_CONFIG_H

#include "attncl/ops.h"
#include "io/json.h"

enum config_type {
    CONFIG_INT,
    CONFIG_NUMBER,
    CONFIG_BOOL,
    CONFIG_WORD,    // one of `words`
    CONFIG_INTS,    // an array
    CONFIG_NUMBERS, // an array
    CONFIG_OBJECT,  // its keys have it as their parent
};

enum { CONFIG_MAX_WORDS = 24, CONFIG_MAX_KEYS = 128, CONFIG_NONE = -1 };

struct config_key {
    const char *name;
    int parent; // the index of the object that the key is in; CONFIG_NONE: the whole configuration
    enum config_type type;
    double min;         // of a CONFIG_INT or CONFIG_NUMBER
    char otherwise[40]; // the default as text, "" where the key is required
    double number;      // the default of a CONFIG_NUMBER, exactly
    bool varies;        // the default depends on other keys
    const char *words[CONFIG_MAX_WORDS];
    size_t n_words;
    bool is_read; // by the configuration at hand; false after exploring alone
    // Exploring: the key whose value led here and which one it was; CONFIG_NONE: always read.
    int cause, variant;
    unsigned run; // exploring: the last run that read it
};

// The keys that were read, in the order of the first reads.
struct config_keys {
    struct config_key list[CONFIG_MAX_KEYS];
    size_t n;
    int cause, variant; // exploring: this run's value, and those that led to its key
    int64_t scale;      // exploring: of required integers and default numbers
    unsigned run;       // exploring: counts
};

struct config {
    const struct json *object; // NULL: exploring
    struct config_keys *keys;
    int parent; // as in struct config_key
};

// An integer from `min` to 2^31 - 1 that must be there, and one with a default.
attncl_status attncl__config_int(struct config *config, const char *key, int64_t min, int64_t *ret);
attncl_status attncl__config_int_or(struct config *config, const char *key, int64_t min,
                                    int64_t otherwise, int64_t *ret);
attncl_status attncl__config_bool_or(struct config *config, const char *key, bool otherwise,
                                     bool *ret);
// An integer from `min` to `max` that must be there: how many parts something gets of which the
// configuration alone says the number, so that a few digits ask for no more than a host has.
attncl_status attncl__config_count(struct config *config, const char *key, int64_t min, int64_t max,
                                   int64_t *ret);
enum {
    CONFIG_MAX_STEPS = 2048,                // of a graph that has nodes for each
    CONFIG_MAX_TOKENS = 16384,              // to be drawn, each a run
    CONFIG_MAX_TABLE_BYTES = 256 * 1048576, // of what is computed, and in no file
};

// Whether a model has a part: as the key says, by default `otherwise`.
enum presence { PRESENT_NEVER, PRESENT_ALWAYS, PRESENT_IF_IN_FILE };
attncl_status attncl__config_presence(struct config *config, const char *key,
                                      enum presence otherwise, enum presence *ret);

// A number of at least `min` that must be there, and one with a default.
attncl_status attncl__config_number(struct config *config, const char *key, double min,
                                    double *ret);
attncl_status attncl__config_number_or(struct config *config, const char *key, double min,
                                       double otherwise, double *ret);

// One to `capacity` integers of at least `min` that must be there.
attncl_status attncl__config_ints(struct config *config, const char *key, int64_t min,
                                  size_t capacity, int64_t *ret, size_t *n);
// Exactly `n` numbers; *ret holds the defaults.
attncl_status attncl__config_numbers_or(struct config *config, const char *key, size_t n,
                                        double *ret);

// One of some words.
struct choice {
    const char *word;
    int value;
};
#define N_CHOICES(choices) (sizeof(choices) / sizeof((choices)[0]))

// `otherwise` NULL: the key must be there.
attncl_status attncl__config_choice(struct config *config, const char *key,
                                    const struct choice *choices, size_t n, const char *otherwise,
                                    int *ret);

// True when the key is this word, which a later attncl__config_choice() of the key need not list.
bool attncl__config_is(struct config *config, const char *key, const char *word);

// An object that must be there.  The caller puts its key before the message of what fails inside.
attncl_status attncl__config_object(struct config *config, const char *key, struct config *ret);

// Activations by their PyTorch class ("ReLU") or function name ("relu").
attncl_status attncl__config_activation(struct config *config, const char *key,
                                        const char *otherwise, attncl_activation *ret);

// The key's row, NULL when it was never read.
struct config_key *attncl__config_find_key(const struct config *config, const char *name);

// ERR_FORMAT for a key of the object, or of one inside it, that was never read: the message names
// it, the nearest and all keys.
attncl_status attncl__config_check_keys(const struct config *config);

// Puts the default of each key that was read with one into `object`, from which `config` was read,
// where it lacks the key; objects inside that `object` lacks count as empty.  A part of a model that
// is there when its file has it stays out.
attncl_status attncl__config_fill(const struct config *config, struct json *object);

#endif
