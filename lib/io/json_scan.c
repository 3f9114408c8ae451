// SPDX-License-Identifier: MIT
//
// Scans JSON text without the parser, which recurses and allocates: checks limits, and iterates over
// members.
//
// Knows only strings, brackets, and where values begin.  Text that is not JSON may pass here; it fails in the parser.

#include <string.h>

#include "base/try.h"
#include "io/json.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Returns the position after the string that begins at `at`, or `bytes` if it does not end.
static size_t skip_string(const char *text, size_t bytes, size_t at)
{
    for (++at; at < bytes && text[at] != '"'; ++at)
        if (text[at] == '\\')
            ++at;
    return at < bytes ? at + 1 : bytes;
}

// Returns the position after the number or word that begins at `at`.
static size_t skip_plain(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && !is_space(text[at]) && !memchr(",:[]{}\"", text[at], 7))
        ++at;
    return at;
}

// Returns the position after the token or blank at `at`.  Brackets change *depth.
static size_t skip_token(const char *text, size_t bytes, size_t at, int *depth)
{
    const char c = text[at];

    if (c == '"')
        return skip_string(text, bytes, at);
    if (!memchr("[]{},: \t\n\r", c, 10))
        return skip_plain(text, bytes, at);
    *depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    return at + 1;
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

static attncl_status check_number(const char *text, size_t at, size_t bytes, bool only_digits)
{
    const int shown = bytes < 40 ? (int)bytes : 40;

    REQUIRE(bytes <= JSON_MAX_NUMBER, ATTNCL_ERR_FORMAT,
            "the number at byte %zu has %zu characters, at most %d are allowed", at, bytes,
            JSON_MAX_NUMBER);
    REQUIRE(!only_digits || all_digits(text + at, bytes), ATTNCL_ERR_FORMAT,
            "the number %.*s at byte %zu is not written in digits only", shown, text + at, at);
    return ATTNCL_OK;
}

attncl_status attncl__json_check(const char *text, size_t bytes, const struct json_limits *limits)
{
    size_t n_values = 0;
    int depth = 0;

    for (size_t at = 0, end; at < bytes; at = end) {
        end = skip_token(text, bytes, at, &depth);
        if (memchr(",:]} \t\n\r", text[at], 8))
            continue;
        REQUIRE(++n_values <= limits->values, ATTNCL_ERR_FORMAT, "JSON of more than %zu values",
                limits->values);
        REQUIRE(depth <= limits->depth, ATTNCL_ERR_FORMAT,
                "JSON nested deeper than %d levels at byte %zu", limits->depth, end);
        if (is_number(text[at]))
            TRY(check_number(text, at, end - at, limits->only_digits));
    }
    return ATTNCL_OK;
}

static size_t skip_space(const char *text, size_t bytes, size_t at)
{
    while (at < bytes && is_space(text[at]))
        ++at;
    return at;
}

// Returns the position after the value that begins at `at`, or `bytes` if it does not end.
static size_t skip_value(const char *text, size_t bytes, size_t at)
{
    int depth = 0;

    do
        at = skip_token(text, bytes, at, &depth);
    while (depth > 0 && at < bytes);
    return at;
}

static attncl_status fail_expected(const char *what, size_t at)
{
    return FAIL(ATTNCL_ERR_FORMAT, "no valid JSON: %s expected (byte %zu)", what, at);
}

static struct json_members begin_members(struct json_span text, char open, char close,
                                         const char *what)
{
    const size_t at = skip_space(text.text, text.bytes, 0);
    const char first = at < text.bytes ? text.text[at] : '\0';
    struct json_members members = {.text = text, .at = at + 1, .close = close};

    if (first == '[' && open == '{')
        members.status = FAIL(ATTNCL_ERR_FORMAT, "the JSON text is an array, expected an object");
    else if (first != open)
        members.status = fail_expected(what, at);
    return members;
}

struct json_members attncl__json_members(struct json_span text)
{
    return begin_members(text, '{', '}', "an object");
}

struct json_members attncl__json_elements(struct json_span text)
{
    return begin_members(text, '[', ']', "an array");
}

// Reads the key at *at and moves *at behind its colon.
static attncl_status read_key(struct json_members *members, size_t *at)
{
    const char *text = members->text.text;
    const size_t bytes = members->text.bytes;

    if (*at == bytes || text[*at] != '"')
        return fail_expected("a key", *at);
    members->key.bytes = skip_string(text, bytes, *at) - *at;
    *at = skip_space(text, bytes, *at + members->key.bytes);
    if (*at == bytes || text[*at] != ':')
        return fail_expected("a colon", *at);
    *at = skip_space(text, bytes, *at + 1);
    return ATTNCL_OK;
}

// Reads the member at `at`, after the comma that separates it from the one before.
static attncl_status read_member(struct json_members *members, size_t at)
{
    const char *text = members->text.text;
    const size_t bytes = members->text.bytes;

    if (members->n > 0) {
        if (at == bytes || text[at] != ',')
            return fail_expected(members->close == '}' ? "a comma or }" : "a comma or ]", at);
        at = skip_space(text, bytes, at + 1);
    }
    members->key = (struct json_span){text + at, 0};
    if (members->close == '}')
        TRY(read_key(members, &at));
    if (at == bytes || memchr(",:]}", text[at], 4))
        return fail_expected("a value", at);
    members->value = (struct json_span){text + at, skip_value(text, bytes, at) - at};
    members->at = at + members->value.bytes;
    ++members->n;
    return ATTNCL_OK;
}

bool attncl__json_next_member(struct json_members *members)
{
    if (members->status != ATTNCL_OK)
        return false;
    const char *text = members->text.text;
    size_t at = skip_space(text, members->text.bytes, members->at);
    const bool is_end = at < members->text.bytes && text[at] == members->close;

    if (!is_end) {
        members->status = read_member(members, at);
        return members->status == ATTNCL_OK;
    }
    at = skip_space(text, members->text.bytes, at + 1);
    if (at < members->text.bytes)
        members->status = fail_expected("the end", at);
    return false;
}
