// SPDX-License-Identifier: MIT
// Configurations as tables of keys.  A row has a key's name, type, range, default, condition, and the
// offset of its value in the settings.  Reading, refusing unknown keys, defaults and descriptions all
// follow from the table.
//
//     static const struct key keys[] = {{"d_model", KEY_INT, AT(settings, d_model), .min = 1},
//                                       {"bias", KEY_BOOL, AT(settings, bias), OR(true)},
//                                       CHECK(check),
//                                       {0}};
#ifndef ATTNCL_MODEL_CONFIG_H
#define ATTNCL_MODEL_CONFIG_H

#include <float.h>

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
    KEY_LIST,     // struct json_numbers
    KEY_OBJECT,   // an object with the keys of `inner`
    KEY_TABLE,    // not a key: includes the rows of `inner`
    KEY_CHECK,    // not a key: calls `check` on the settings read so far
};

// Whether a model has an optional part.
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

// "The key is one of the words", or none of them.  A boolean's words are "true" and "false", an
// integer's its digits.  The key is an earlier one of the same object.
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
    const char *name; // NULL: not a key but a constant setting, `otherwise`
    enum key_type type;
    size_t at;       // offset of the value in the settings
    double min, max; // of numbers; max 0: INT32_MAX for integers, FLT_MAX for others
    double below;    // the number is less than this; 0: no bound
    enum { PARITY_ANY, PARITY_EVEN, PARITY_ODD } parity; // of an integer
    bool optional;
    // The default is one of these.
    bool is_preset;                         // the value already in the settings
    double otherwise;                       // a number
    const char *word;                       // a word
    double numbers[2];                      // two numbers
    const char *same_as;                    // another key's value
    double (*derive)(const void *settings); // computed from earlier keys
    const struct choice *choices;
    bool any_case;   // of the words
    bool only_given; // a key's alternative name: if absent, no default is written
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
    CONFIG_MAX_STEPS = 2048,                // of a graph with nodes for each step
    CONFIG_MAX_TOKENS = 16384,              // to draw, one run each
    CONFIG_MAX_TABLE_BYTES = 256 * 1048576, // of a computed table
};

// Reads the applicable keys.  Every failure is ERR_FORMAT and names the key.
attncl_status attncl__config_read(const struct key *table, const struct json *object,
                                  void *settings);

// ERR_FORMAT for a key of the object, or of an inner one, that is not in the table or, with `settings`
// read from the object, does not apply.  The message names it, the nearest key, and all keys.
attncl_status attncl__config_check_keys(const struct key *table, const struct json *object,
                                        const void *settings);

// Adds the defaults of missing applicable keys to `object`, from which `settings` were read; missing
// inner objects count as empty.  Omits parts that a model has only if its file has them.
attncl_status attncl__config_fill(const struct key *table, struct json *object,
                                  const void *settings);

// The value of an applicable key, or of an inner object's: "model.arch".  NULL: none.
const void *attncl__config_value(const struct key *table, const void *settings, const char *name,
                                 const struct key **key_ret);
bool attncl__config_holds(const struct key *table, const void *settings,
                          const struct condition *when);

bool attncl__condition_holds(const struct condition *when, const char *word);
// A number as the text of the key's value.
enum { KEY_TEXT_BYTES = 64 };
const char *attncl__key_text(const struct key *key, double number, char text[KEY_TEXT_BYTES]);

#endif
