// SPDX-License-Identifier: MIT
// JSON objects: parsed strictly (no duplicate key, UTF-8 only, no zero byte in a string, bounded
// depth), read by typed getters.
//
// When a key is absent, a getter succeeds, sets *present to false and leaves the value unchanged, so that a default
// stays.  With `present` NULL the key is required: its absence is ERR_FORMAT.  So is a value of another type: "heads is
// a string, expected an integer".  The caller adds the place by attncl__prefix_failure(status, "config").
#ifndef ATTNCL_IO_JSON_H
#define ATTNCL_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"

struct json; // an object

// Limits of a text.  They are checked in one pass before parsing, so that hostile text costs neither stack
// nor much memory.
struct json_limits {
    int depth;        // of nested objects and arrays
    size_t values;    // strings (including keys), numbers, words, objects and arrays
    bool only_digits; // numbers have no sign, fraction or exponent
};
enum { JSON_MAX_NUMBER = 400 }; // characters of a number, with any limits
#define JSON_CONFIG_LIMITS (&(const struct json_limits){8, 100000, false})

attncl_status attncl__json_check(const char *text, size_t bytes, const struct json_limits *limits);

// Checks the limits, then parses an object, which the caller frees.
attncl_status attncl__json_parse(const char *text, size_t bytes, const struct json_limits *limits,
                                 struct json **object_ret);
void attncl__json_free(struct json *object); // accepts NULL

// A part of a JSON text.
struct json_span {
    const char *text;
    size_t bytes;
};

// Iterates over the members of an object, or the elements of an array, without parsing them.
struct json_members {
    struct json_span key, value; // the current member as written; an array's elements have no key
    attncl_status status;
    struct json_span text;
    size_t at, n; // position in text; number of members found so far
    char close;   // ] or }
};
struct json_members attncl__json_members(struct json_span text);
struct json_members attncl__json_elements(struct json_span text);
// Finds the next member.  False after the last one, and after a failure: then `status` is ERR_FORMAT
// because the text is no object or array, or a comma or colon is missing.
bool attncl__json_next_member(struct json_members *members);

// Parse the value of `key`; another type is ERR_FORMAT.  The first parses an object, the second a string,
// which it writes with a zero to `to` (at most value->bytes); *end is the position after the zero.
attncl_status attncl__json_parse_value(const struct json_span *value, const char *key,
                                       const struct json_limits *limits, struct json **object_ret);
attncl_status attncl__json_parse_text(const struct json_span *value, const char *key,
                                      const struct json_limits *limits, char *to, char **end);

// An integer has no fraction and no exponent: 2.0 is refused.
attncl_status attncl__json_int(const struct json *object, const char *key, bool *present,
                               int64_t *value);
attncl_status attncl__json_double(const struct json *object, const char *key, bool *present,
                                  double *value); // integers too
attncl_status attncl__json_bool(const struct json *object, const char *key, bool *present,
                                bool *value);

// The next three return values that are borrowed from `object`.
attncl_status attncl__json_text(const struct json *object, const char *key, bool *present,
                                const char **value);
attncl_status attncl__json_object(const struct json *object, const char *key, bool *present,
                                  const struct json **value);
// *value: entry `i` of an array of objects; NULL beyond the last one, or when the key is absent.
attncl_status attncl__json_item(const struct json *object, const char *key, size_t i,
                                const struct json **value);

// Reads at most `capacity` integers; more are ERR_FORMAT.  *n: their number.
attncl_status attncl__json_ints(const struct json *object, const char *key, bool *present,
                                size_t capacity, int64_t *values, size_t *n);

// Reads pairs of integers, [[a, b], ...], at least one.  An integer c stands for [[0, c]].
enum { JSON_MAX_PAIRS = 32 };
struct json_pairs {
    size_t n;
    int64_t list[JSON_MAX_PAIRS][2];
};
attncl_status attncl__json_pairs(const struct json *object, const char *key, bool *present,
                                 struct json_pairs *pairs);

// An array of 0 and 1 that repeats: flag i is list[i mod n].  All flags are true when the key is absent (n = 0).
enum { JSON_MAX_FLAGS = 128 };
struct json_flags {
    size_t n;
    bool list[JSON_MAX_FLAGS];
};
attncl_status attncl__json_flags(const struct json *object, const char *key, bool *present,
                                 struct json_flags *flags);
bool attncl__json_flag(const struct json_flags *flags, int64_t i);

// Reads exactly `n` numbers.
attncl_status attncl__json_doubles(const struct json *object, const char *key, bool *present,
                                   size_t n, double *values);

// Reads any number of them, up to the capacity.
enum { JSON_MAX_NUMBERS = 128 };
struct json_numbers {
    size_t n;
    double list[JSON_MAX_NUMBERS];
};
attncl_status attncl__json_numbers(const struct json *object, const char *key, bool *present,
                                   struct json_numbers *numbers);

size_t attncl__json_count(const struct json *object);
bool attncl__json_has(const struct json *object, const char *key);

// Iterates over keys in the order of the text: NULL gives the first, otherwise the one after `key`, which
// this function returned.  Returns NULL after the last.
const char *attncl__json_next(const struct json *object, const char *key);

// *ret: the object under `key`, borrowed; adds an empty one when the key is absent.  ERR_FORMAT when the
// value is of another type.
attncl_status attncl__json_inner(struct json *object, const char *key, struct json **ret);

// Sets `key` to the value of a JSON text ("true", "\"word\"", "[0.9, 0.999]"), or to a number.
attncl_status attncl__json_set(struct json *object, const char *key, const char *text);
attncl_status attncl__json_set_int(struct json *object, const char *key, int64_t value);
attncl_status attncl__json_set_number(struct json *object, const char *key, double value);

// Writes an object in one line, or each key of it and of inner objects in a line of its own.  The caller
// frees *text_ret.
enum json_layout { JSON_ONE_LINE, JSON_LINES };
attncl_status attncl__json_write(const struct json *object, enum json_layout layout,
                                 char **text_ret);
// Writes the value of `key` in one line.  *text_ret: NULL when the key is absent.
attncl_status attncl__json_write_value(const struct json *object, const char *key, char **text_ret);

#endif
