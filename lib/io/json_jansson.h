// SPDX-License-Identifier: MIT
// Shared by the files that include <jansson.h>.
#ifndef ATTNCL_IO_JSON_JANSSON_H
#define ATTNCL_IO_JSON_JANSSON_H

#include <jansson.h>

#include "io/json.h"

// A struct json is its json_t under another name.  Some of Jansson's functions take a json_t that is not
// const but do not change it.
static inline json_t *jansson(const struct json *object)
{
    return (json_t *)(uintptr_t)(const void *)object;
}

// Parses a text within the limits and checks the values against it.  ERR_NO_MEMORY when memory was short
// in any way, ERR_FORMAT with the place of a mistake.  The caller calls json_decref(*ret).
attncl_status attncl__json_load(const char *text, size_t bytes, const struct json_limits *limits,
                                size_t flags, json_t **ret);

// Returns "an object", "true", ...
const char *attncl__json_type_words(const json_t *value);

#endif
