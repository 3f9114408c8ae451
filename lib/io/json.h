// SPDX-License-Identifier: MIT
// JSON objects: parsed strictly (no duplicate key, UTF-8 only, no zero byte in a string, bounded
// depth), read by typed getters.
//
// When a key is absent, a getter succeeds, sets *present to false and leaves the value unchanged,
// so that a default stays.  With `present` NULL the key is required: its absence is ERR_FORMAT.  A
// value of another type is ERR_FORMAT: "heads is a string, expected an integer".  The caller adds
// the place by attncl__prefix_failure(status, "config").
#ifndef ATTNCL_IO_JSON_H
#define ATTNCL_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"

struct json; // an object

// Limits of a text, checked in one pass before it is parsed, so that hostile text costs neither
// stack nor much memory.
struct json_limits {
    int depth;        // of nested objects and arrays
    size_t values;    // strings (keys too), numbers, words, objects and arrays
    bool only_digits; // numbers are non-negative integers without sign, fraction, exponent
};
// The longest number, in characters, with any limits.
enum { JSON_MAX_NUMBER = 400 };
#define JSON_CONFIG_LIMITS (&(const struct json_limits){8, 100000, false})

attncl_status attncl__json_check(const char *text, size_t bytes, const struct json_limits *limits);

// Checks the limits, then parses an object.  *object_ret is owned by the caller.
attncl_status attncl__json_parse(const char *text, size_t bytes, const struct json_limits *limits,
                                 struct json **object_ret);
void attncl__json_free(struct json *object); // accepts NULL

// A part of a JSON text.
struct json_span {
    const char *text;
    size_t bytes;
};

// The members of an object one after another, in time and memory of one of them: each key, in its
// quotes, and each value as they are written, neither checked.
struct json_members {
    struct json_span key, value; // of the member that was found last
    attncl_status status;
    struct json_span text;
    size_t at, n; // n: members that were found
    char close;   // ] or }
};
struct json_members attncl__json_members(struct json_span text);
// The same of an array, whose elements have empty keys.
struct json_members attncl__json_elements(struct json_span text);
// Finds the next one.  False after the last, and on a failure, which is the status: what is no
// object, or has no comma where one belongs, is ERR_FORMAT.
bool attncl__json_next_member(struct json_members *members);

// Parses the value of `key`: an object as attncl__json_parse() does, or a string, which is written
// to `to` with a zero and needs at most value->bytes there; *end is then behind it.  Another type is
// ERR_FORMAT.
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

// Their results are borrowed from `object`.
attncl_status attncl__json_text(const struct json *object, const char *key, bool *present,
                                const char **value);
attncl_status attncl__json_object(const struct json *object, const char *key, bool *present,
                                  const struct json **value);
// Entry `i` of an array of objects; NULL beyond the last one, and where the key is absent.
attncl_status attncl__json_item(const struct json *object, const char *key, size_t i,
                                const struct json **value);

// Reads up to `capacity` integers and their number *n; more are ERR_FORMAT.
attncl_status attncl__json_ints(const struct json *object, const char *key, bool *present,
                                size_t capacity, int64_t *values, size_t *n);

// Pairs of integers, [[a, b], ...], at least one.  An integer c stands for [[0, c]].
enum { JSON_MAX_PAIRS = 32 };
struct json_pairs {
    size_t n;
    int64_t list[JSON_MAX_PAIRS][2];
};
attncl_status attncl__json_pairs(const struct json *object, const char *key, bool *present,
                                 struct json_pairs *pairs);

// An array of 0 and 1, which repeats: of i it is list[i mod n], and with n = 0, where the key is absent, true.
enum { JSON_MAX_FLAGS = 128 };
struct json_flags {
    size_t n;
    bool list[JSON_MAX_FLAGS];
};
attncl_status attncl__json_flags(const struct json *object, const char *key, bool *present,
                                 struct json_flags *flags);
bool attncl__json_flag(const struct json_flags *flags, int64_t i);

// Exactly `n` numbers.
attncl_status attncl__json_doubles(const struct json *object, const char *key, bool *present,
                                   size_t n, double *values);

size_t attncl__json_count(const struct json *object);
bool attncl__json_has(const struct json *object, const char *key);

// Iterates over keys in the order of the text: the first for NULL, else the one after `key`, which
// this function returned.  NULL after the last.
const char *attncl__json_next(const struct json *object, const char *key);

// The object inside `object` under `key`, which becomes an empty one where the key is absent.
// Borrowed.  ERR_FORMAT when the value is of another type.
attncl_status attncl__json_inner(struct json *object, const char *key, struct json **ret);

// Sets `key` to the value of a JSON text ("true", "\"word\"", "[0.9, 0.999]"), or to a number.
attncl_status attncl__json_set(struct json *object, const char *key, const char *text);
attncl_status attncl__json_set_int(struct json *object, const char *key, int64_t value);
attncl_status attncl__json_set_number(struct json *object, const char *key, double value);

// Writes an object, its keys in their order: in one line, or a key of it and of the objects inside a
// line.  *text_ret is owned by the caller.
enum json_layout { JSON_ONE_LINE, JSON_LINES };
attncl_status attncl__json_write(const struct json *object, enum json_layout layout,
                                 char **text_ret);
// One value of it in one line; NULL where the key is absent.
attncl_status attncl__json_write_value(const struct json *object, const char *key, char **text_ret);

#endif
