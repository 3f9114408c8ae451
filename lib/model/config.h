// SPDX-License-Identifier: MIT
// Configurations, declared: a table names every key with its type, range, default and condition, and
// where its value goes in the settings that the table fills.  Reading, the refusal of other keys,
// defaults and descriptions follow from the table, and from nothing else.
//
//     static const struct key keys[] = {{"d_model", KEY_INT, AT(settings, d_model), .min = 1},
//                                       {"bias", KEY_BOOL, AT(settings, bias), OR(true)},
//                                       CHECK(check),
//                                       {0}};
#ifndef ATTNCL_MODEL_CONFIG_H
#define ATTNCL_MODEL_CONFIG_H

#include "attncl/ops.h"
#include "base/try.h"
#include "io/json.h"

enum key_type {
    KEY_END,
    KEY_INT,      // int64_t
    KEY_NUMBER,   // double
    KEY_BOOL,     // bool
    KEY_PRESENCE, // enum presence
    KEY_WORD,     // int, or an enumeration: the value of one of `choices`
    KEY_INTS,     // struct int_list
    KEY_FLAGS,    // struct json_flags
    KEY_PAIRS,    // struct json_pairs
    KEY_NUMBERS,  // double [2]
    KEY_OBJECT,   // an object with the keys of `inner`
    KEY_TABLE,    // no key: those of `inner`, beside the table's own
    KEY_CHECK,    // no key: a check of what was read until here
};

// Whether a model has a part.
enum presence { PRESENT_NEVER, PRESENT_ALWAYS, PRESENT_IF_IN_FILE };

struct int_list {
    size_t n;
    int64_t list[ATTNCL_MAX_RANK];
};

// A word and its value; lists end with {0}.
struct choice {
    const char *word;
    int value;
};

// "The key is one of the words", or is none of them; those of a boolean are "true" and "false", those of
// an integer its digits.  The key is one above it, of the same object.
enum { CONDITION_MAX_WORDS = 6 };
struct condition {
    const char *key; // NULL: always
    bool is_not;
    const char *words[CONDITION_MAX_WORDS];
};
#define WHEN(name, ...)   .when = {(name), false, {__VA_ARGS__}}
#define UNLESS(name, ...) .when = {(name), true, {__VA_ARGS__}}
#define ON(...)           WHEN("layer", __VA_ARGS__)
#define OFF(...)          UNLESS("layer", __VA_ARGS__)

struct key {
    const char *name; // NULL: no key but a setting, which becomes `otherwise`
    enum key_type type;
    size_t at;       // where the value goes in the settings
    double min, max; // of numbers; max 0: INT32_MAX for integers, none for others
    double below;    // the number is less than this; 0: none
    enum { PARITY_ANY, PARITY_EVEN, PARITY_ODD } parity; // of an integer
    // The default: a number, a word, two numbers, another key's value, what a function makes of the keys above, or what
    // the settings hold.
    bool optional, is_preset;
    double otherwise;
    const char *word;
    double numbers[2];
    const char *same_as;
    double (*derive)(const void *settings);
    const struct choice *choices;
    bool any_case;   // of the words
    bool only_given; // another name of a key: where it is not given, no default is written for it
    const struct key *inner;
    attncl_status (*check)(void *settings);
    struct condition when; // rows of one name exclude each other, each with its default
};

// The rows of a table.
#define KEYS(...)           ((const struct key[]){__VA_ARGS__, {0}})
#define AT(settings, field) offsetof(struct settings, field)
#define OR(value)           .optional = true, .otherwise = (value)
#define OR_WORD(value)      .optional = true, .word = (value)
#define OR_NUMBERS(...)     .optional = true, .numbers = {__VA_ARGS__}
#define OR_AS(name)         .optional = true, .same_as = (name)
#define OR_FROM(function)   .optional = true, .derive = (function)
#define OR_PRESET           .optional = true, .is_preset = true
#define SETTING(...)                                                                               \
    {                                                                                              \
        NULL, __VA_ARGS__                                                                          \
    }
#define KEYS_OF(table, ...)                                                                        \
    {                                                                                              \
        NULL, KEY_TABLE, __VA_ARGS__, .inner = (table)                                             \
    }
#define CHECK(function)                                                                            \
    {                                                                                              \
        NULL, KEY_CHECK, .check = (function)                                                       \
    }

enum {
    CONFIG_MAX_STEPS = 2048,                // of a graph that has nodes for each
    CONFIG_MAX_TOKENS = 16384,              // to be drawn, each a run
    CONFIG_MAX_TABLE_BYTES = 256 * 1048576, // of what is computed, and in no file
};

// Reads the keys that apply.  Every failure is ERR_FORMAT and names the key.
attncl_status attncl__config_read(const struct key *table, const struct json *object,
                                  void *settings);

// ERR_FORMAT for a key of the object, or of one inside it, that no configuration has, or with
// `settings`, which were read from it, this one has not: the message names it, the nearest and all.
attncl_status attncl__config_check_keys(const struct key *table, const struct json *object,
                                        const void *settings);

// Puts the default of each key that applies into `object`, from which `settings` were read, where it
// lacks the key; objects inside that it lacks count as empty.  A part of a model that is there when
// its file has it stays out.
attncl_status attncl__config_fill(const struct key *table, struct json *object,
                                  const void *settings);

// The value of a key that applies, or of one of an object, "model.arch"; NULL: there is none.
const void *attncl__config_value(const struct key *table, const void *settings, const char *name,
                                 const struct key **key_ret);
bool attncl__config_holds(const struct key *table, const void *settings,
                          const struct condition *when);

// For descriptions.
bool attncl__condition_holds(const struct condition *when, const char *word);
// A number as the key's text; the first of the key's words that has it.
enum { KEY_TEXT_BYTES = 64 };
const char *attncl__key_text(const struct key *key, double number, char text[KEY_TEXT_BYTES]);

#endif
