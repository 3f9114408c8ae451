// SPDX-License-Identifier: MIT
//
// Limits of a JSON text, checked before the parser, which recurses and allocates.
//
// Knows only as much of the grammar as the limits need: strings, brackets, and where values begin.
// Text that is not JSON may pass here and fails in the parser.

#include <string.h>

#include "base/try.h"
#include "io/json.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The position after the string that begins at `at`, or `bytes`.
static size_t skip_string(const char *text, size_t bytes, size_t at)
{
    for (++at; at < bytes && text[at] != '"'; ++at)
        if (text[at] == '\\')
            ++at;
    return at < bytes ? at + 1 : bytes;
}

// The position after the number or word that begins at `at`.
static size_t skip_plain(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && !is_space(text[at]) && !memchr(",:[]{}\"", text[at], 7))
        ++at;
    return at;
}

static bool is_number(char c)
{
    return c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9');
}

static bool all_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

attncl_status attncl__json_check(const char *text, size_t bytes, const struct json_limits *limits)
{
    size_t n_values = 0;
    int depth = 0;

    for (size_t at = 0; at < bytes;) {
        const char c = text[at];
        if (is_space(c) || c == ',' || c == ':') {
            ++at;
            continue;
        }
        if (c == ']' || c == '}') {
            --depth;
            ++at;
            continue;
        }
        ++n_values;
        REQUIRE(n_values <= limits->values, ATTNCL_ERR_FORMAT, "JSON of more than %zu values",
                limits->values);
        if (c == '[' || c == '{') {
            ++depth;
            ++at;
            REQUIRE(depth <= limits->depth, ATTNCL_ERR_FORMAT,
                    "JSON nested deeper than %d levels at byte %zu", limits->depth, at);
        } else if (c == '"') {
            at = skip_string(text, bytes, at);
        } else {
            const size_t end = skip_plain(text, bytes, at);
            const int shown = end - at < 40 ? (int)(end - at) : 40;
            REQUIRE(!limits->only_digits || !is_number(c) || all_digits(text + at, end - at),
                    ATTNCL_ERR_FORMAT, "the number %.*s at byte %zu is not written in digits only",
                    shown, text + at, at);
            at = end;
        }
    }
    return ATTNCL_OK;
}
