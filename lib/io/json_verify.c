// SPDX-License-Identifier: MIT
//
// Parses by Jansson and verifies the values against the text.
//
// When memory runs short, Jansson may drop a character of a string, key or number and go on.  So text and
// values are walked side by side, the text by json_scan.c, which allocates nothing.

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "base/utf8.h"
#include "io/json_jansson.h"

static bool read_hex4(const char *at, const char *end, uint32_t *ret)
{
    char digits[5] = "", *stop;

    if (end - at < 4)
        return false;
    memcpy(digits, at, 4);
    *ret = (uint32_t)strtoul(digits, &stop, 16);
    return !*stop;
}

// Decodes the byte or escape at *at into `out` and moves *at behind it.  Returns the number of bytes, 0 for an invalid
// escape.
static size_t decode_next(const char **at, const char *end, char out[UTF8_MAX_BYTES])
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;

    out[0] = *(*at)++;
    if (out[0] != '\\')
        return 1;
    const char letter = *at < end ? *(*at)++ : '\0';
    if (letter != 'u') {
        const char *found = letter ? strchr(letters, letter) : NULL;
        out[0] = found ? values[found - letters] : '\0';
        return found != NULL;
    }
    if (!read_hex4(*at, end, &code))
        return 0;
    *at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        if (end - *at < 2 || memcmp(*at, "\\u", 2) != 0 || !read_hex4(*at + 2, end, &low) ||
            low < 0xdc00 || low > 0xdfff)
            return 0;
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return attncl__utf8_encode(code, out);
}

static bool string_matches(struct json_span text, const char *value, size_t n)
{
    const char *at = text.text + 1, *const last = text.text + text.bytes - 1;
    const char *const end = value + n;

    if (text.bytes < 2 || *text.text != '"' || *last != '"')
        return false;
    while (at < last) {
        char bytes[UTF8_MAX_BYTES];
        const size_t length = decode_next(&at, last, bytes);
        if (length == 0 || length > (size_t)(end - value) || memcmp(value, bytes, length) != 0)
            return false;
        value += length;
    }
    return value == end;
}

// Reads the number as Jansson does: integers exactly, others by strtod() with the locale's decimal point.
static bool number_matches(struct json_span number, const json_t *value)
{
    char text[JSON_MAX_NUMBER + 1], *end;

    if (number.bytes == 0 || number.bytes > JSON_MAX_NUMBER)
        return false;
    memcpy(text, number.text, number.bytes);
    text[number.bytes] = '\0';
    const bool whole = !strpbrk(text, ".eE");
    if (whole != json_is_integer(value))
        return false;
    if (whole)
        return strtoll(text, &end, 10) == json_integer_value(value) && !*end;
    char *const point = strchr(text, '.');
    if (point)
        *point = *localeconv()->decimal_point;
    return strtod(text, &end) == json_real_value(value) && !*end;
}

static bool value_matches(struct json_span text, json_t *value);

static bool members_match(struct json_span text, json_t *value)
{
    const bool is_object = json_is_object(value);
    void *at = json_object_iter(value); // NULL for an array
    struct json_members m = is_object ? attncl__json_members(text) : attncl__json_elements(text);

    for (; attncl__json_next_member(&m); at = is_object ? json_object_iter_next(value, at) : NULL) {
        const char *name = json_object_iter_key(at);
        json_t *found = is_object ? json_object_iter_value(at) : json_array_get(value, m.n - 1);
        if (!found || (is_object && !string_matches(m.key, name, strlen(name))) ||
            !value_matches(m.value, found))
            return false;
    }
    return m.status == ATTNCL_OK && (is_object ? !at : m.n == json_array_size(value));
}

static bool is_word(struct json_span text, const char *word)
{
    return text.bytes == strlen(word) && memcmp(text.text, word, text.bytes) == 0;
}

// Recurses as deep as the text is nested, which attncl__json_check() limits.
static bool value_matches(struct json_span text, json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return members_match(text, value);
    case JSON_STRING:
        return string_matches(text, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
    case JSON_REAL:
        return number_matches(text, value);
    case JSON_TRUE:
        return is_word(text, "true");
    case JSON_FALSE:
        return is_word(text, "false");
    case JSON_NULL:
        break;
    }
    return is_word(text, "null");
}

static struct json_span trim(const char *text, size_t bytes)
{
    for (; bytes > 0 && memchr(" \t\r\n", *text, 4); --bytes)
        ++text;
    while (bytes > 0 && memchr(" \t\r\n", text[bytes - 1], 4))
        --bytes;
    return (struct json_span){text, bytes};
}

// Lack of memory can look like a mistake in the text, but a mistake is the same when the text is read again.
static bool is_mistake(const char *text, size_t bytes, size_t flags, const json_error_t *error)
{
    json_error_t again;
    json_t *value = json_loadb(text, bytes, flags, &again);
    const bool failed = !value;

    json_decref(value);
    return failed && *error->text && json_error_code(error) != json_error_out_of_memory &&
           again.position == error->position && strcmp(again.text, error->text) == 0;
}

attncl_status attncl__json_load(const char *text, size_t bytes, const struct json_limits *limits,
                                size_t flags, json_t **ret)
{
    json_error_t error;

    flags |= JSON_REJECT_DUPLICATES;
    TRY(attncl__json_check(text, bytes, limits));
    json_t *value = json_loadb(text, bytes, flags, &error);
    REQUIRE(value || !is_mistake(text, bytes, flags, &error), ATTNCL_ERR_FORMAT,
            "no valid JSON: %s (byte %d)", error.text, error.position);
    if (!value || !value_matches(trim(text, bytes), value)) {
        json_decref(value);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "JSON of %zu bytes", bytes);
    }
    *ret = value;
    return ATTNCL_OK;
}
