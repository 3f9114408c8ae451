// SPDX-License-Identifier: MIT
// What the files that include <jansson.h> share.
#ifndef ATTNCL_IO_JSON_JANSSON_H
#define ATTNCL_IO_JSON_JANSSON_H

#include <jansson.h>

#include "io/json.h"

// Jansson's value of a text within the limits, checked against it: ERR_NO_MEMORY when memory was
// short in any way, ERR_FORMAT with the place for a mistake.  *ret is the caller's to json_decref().
attncl_status attncl__json_load(const char *text, size_t bytes, const struct json_limits *limits,
                                size_t flags, json_t **ret);

// "an object", "true": what a value is.
const char *attncl__json_type_words(const json_t *value);

#endif
