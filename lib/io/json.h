// SPDX-License-Identifier: MIT
// JSON objects from files: parsed strictly (no double key, UTF-8 only, no zero byte in a string,
// bounded depth), read by typed getters.
//
// A getter of an absent key succeeds, sets *present to false and leaves the value alone, so that a
// default set before stays.  `present` may be NULL for a key that must be there: its absence is
// then ERR_FORMAT.  A value of another type is ERR_FORMAT: "heads is a string, expected an
// integer".  The caller says where: attncl__error_prefix("config").
#ifndef ATTNCL_IO_JSON_H
#define ATTNCL_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"

struct json; // an object

// What a text may hold, looked at in one pass before it is parsed: hostile text costs neither stack
// nor much memory.
struct json_limits {
    int depth;        // of nested objects and arrays
    size_t values;    // strings (keys too), numbers, words, objects and arrays
    bool only_digits; // numbers are non-negative integers without sign, fraction, exponent
};
#define JSON_CONFIG_LIMITS (&(const struct json_limits){8, 100000, false})

attncl_status attncl__json_check(const char *text, size_t bytes, const struct json_limits *limits);

// Checks the limits, then parses an object.  *object_ret is owned by the caller.
attncl_status attncl__json_parse(const char *text, size_t bytes, const struct json_limits *limits,
                                 struct json **object_ret);
void attncl__json_free(struct json *object); // NULL is fine

// An integer is written without fraction and exponent: 2.0 is refused.
attncl_status attncl__json_int(const struct json *object, const char *key, bool *present,
                               int64_t *value);
attncl_status attncl__json_double(const struct json *object, const char *key, bool *present,
                                  double *value); // integers too
attncl_status attncl__json_bool(const struct json *object, const char *key, bool *present,
                                bool *value);

// What these return is borrowed from `object`.
attncl_status attncl__json_text(const struct json *object, const char *key, bool *present,
                                const char **value);
attncl_status attncl__json_object(const struct json *object, const char *key, bool *present,
                                  const struct json **value);

// Up to `capacity` integers into values, their count into *n; more are ERR_FORMAT.
attncl_status attncl__json_ints(const struct json *object, const char *key, bool *present,
                                size_t capacity, int64_t *values, size_t *n);

// Exactly `n` numbers.
attncl_status attncl__json_doubles(const struct json *object, const char *key, bool *present,
                                   size_t n, double *values);

size_t attncl__json_count(const struct json *object);
bool attncl__json_has(const struct json *object, const char *key);

// The key after `key` in the text's order, NULL after the last; key NULL: the first.  `key` must be
// one that this function returned.
const char *attncl__json_next(const struct json *object, const char *key);

#endif
