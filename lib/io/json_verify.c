// SPDX-License-Identifier: MIT
//
// Parsing by Jansson, and whether the values are what the text says.
//
// Jansson drops a character of a string, key or number when memory for it runs short, and goes on.
// So text and values are walked side by side, the text by json_scan.c; that allocates nothing.

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

// The bytes that a byte of a string or an escape means, at *at, which is moved behind it; 0: no valid escape.
static size_t read_bytes(const char **at, const char *end, char out[UTF8_MAX_BYTES])
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

static bool string_agrees(struct json_span text, const char *value, size_t n)
{
    const char *at = text.text + 1, *const last = text.text + text.bytes - 1;
    const char *const end = value + n;

    if (text.bytes < 2 || *text.text != '"' || *last != '"')
        return false;
    while (at < last) {
        char bytes[UTF8_MAX_BYTES];
        const size_t length = read_bytes(&at, last, bytes);
        if (length == 0 || length > (size_t)(end - value) || memcmp(value, bytes, length) != 0)
            return false;
        value += length;
    }
    return value == end;
}

// A number as Jansson reads it: whole ones exactly, others by strtod() with the locale's point.
static bool number_agrees(struct json_span number, const json_t *value)
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

static bool value_agrees(struct json_span text, json_t *value);

static bool members_agree(struct json_span text, json_t *value)
{
    const bool is_object = json_is_object(value);
    void *at = json_object_iter(value); // NULL for an array
    struct json_members m = is_object ? attncl__json_members(text) : attncl__json_elements(text);

    for (; attncl__json_next_member(&m); at = is_object ? json_object_iter_next(value, at) : NULL) {
        const char *name = json_object_iter_key(at);
        json_t *found = is_object ? json_object_iter_value(at) : json_array_get(value, m.n - 1);
        if (!found || (is_object && !string_agrees(m.key, name, strlen(name))) ||
            !value_agrees(m.value, found))
            return false;
    }
    return m.status == ATTNCL_OK && (is_object ? !at : m.n == json_array_size(value));
}

static bool is_word(struct json_span text, const char *word)
{
    return text.bytes == strlen(word) && memcmp(text.text, word, text.bytes) == 0;
}

// Recurses as deep as the text is nested: attncl__json_check() limits that.
static bool value_agrees(struct json_span text, json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return members_agree(text, value);
    case JSON_STRING:
        return string_agrees(text, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
    case JSON_REAL:
        return number_agrees(text, value);
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

// Short memory can look like a mistake in the text.  A mistake is the same when it is read again.
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
    if (!value || !value_agrees(trim(text, bytes), value)) {
        json_decref(value);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "JSON of %zu bytes", bytes);
    }
    *ret = value;
    return ATTNCL_OK;
}
