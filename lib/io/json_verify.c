// SPDX-License-Identifier: MIT
//
// Parsing by Jansson, and whether the values are what the text says.
//
// Jansson drops a character of a string, key or number when memory for it runs short, and goes on.
// So text and values are walked side by side; that allocates nothing.

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "base/utf8.h"
#include "io/json_jansson.h"

// What is left of the text.
struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && memchr(" \t\r\n", *c->at, 4))
        ++c->at;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    const bool found = c->at < c->end && *c->at == wanted;
    c->at += found;
    return found;
}

static bool take_word(struct cursor *c, const char *word)
{
    for (; *word; ++word)
        if (c->at == c->end || *c->at++ != *word)
            return false;
    return true;
}

static bool hex4(struct cursor *c, uint32_t *ret)
{
    char digits[5] = "", *end;

    if (c->end - c->at < 4)
        return false;
    memcpy(digits, c->at, 4);
    c->at += 4;
    *ret = (uint32_t)strtoul(digits, &end, 16);
    return !*end;
}

// The bytes of the escape after a backslash; 0: none is valid.
static size_t escaped(struct cursor *c, char out[4])
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char letter = c->at < c->end ? *c->at++ : '\0';
    uint32_t code, low;

    if (letter != 'u') {
        const char *found = letter ? strchr(letters, letter) : NULL;
        out[0] = found ? values[found - letters] : '\0';
        return found != NULL;
    }
    if (!hex4(c, &code))
        return 0;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(c, "\\u") || !hex4(c, &low) || low < 0xdc00 || low > 0xdfff)
            return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return attncl__utf8_encode(code, out);
}

static bool string_agrees(struct cursor *c, const char *value, size_t n)
{
    const char *const end = value + n;

    if (!take(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        char bytes[4] = {*c->at++};
        const size_t length = bytes[0] == '\\' ? escaped(c, bytes) : 1;
        if (length == 0 || length > (size_t)(end - value) || memcmp(value, bytes, length) != 0)
            return false;
        value += length;
    }
    return value == end && take(c, '"');
}

// A number as Jansson reads it: whole ones exactly, others by strtod() with the locale's point.
static bool number_agrees(struct cursor *c, const json_t *value)
{
    char text[JSON_MAX_NUMBER + 1], *end;
    size_t n = 0;

    while (c->at < c->end && strchr("+-.eE0123456789", *c->at) && *c->at) {
        if (n == JSON_MAX_NUMBER)
            return false;
        text[n++] = *c->at++;
    }
    text[n] = '\0';
    const bool whole = !strpbrk(text, ".eE");
    if (n == 0 || whole != json_is_integer(value))
        return false;
    if (whole)
        return strtoll(text, &end, 10) == json_integer_value(value) && !*end;
    char *const point = strchr(text, '.');
    if (point)
        *point = *localeconv()->decimal_point;
    return strtod(text, &end) == json_real_value(value) && !*end;
}

static bool value_agrees(struct cursor *c, json_t *value);

static bool object_agrees(struct cursor *c, json_t *object)
{
    void *member = json_object_iter(object);

    if (!take(c, '{'))
        return false;
    for (bool first = true; member; member = json_object_iter_next(object, member), first = false) {
        const char *key = json_object_iter_key(member);
        if ((!first && !take(c, ',')) || !string_agrees(c, key, strlen(key)) || !take(c, ':') ||
            !value_agrees(c, json_object_iter_value(member)))
            return false;
    }
    return take(c, '}');
}

static bool array_agrees(struct cursor *c, json_t *array)
{
    if (!take(c, '['))
        return false;
    for (size_t i = 0; i < json_array_size(array); ++i)
        if ((i > 0 && !take(c, ',')) || !value_agrees(c, json_array_get(array, i)))
            return false;
    return take(c, ']');
}

// Recurses as deep as the text is nested: attncl__json_check() limits that.
static bool value_agrees(struct cursor *c, json_t *value)
{
    skip_space(c);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return object_agrees(c, value);
    case JSON_ARRAY:
        return array_agrees(c, value);
    case JSON_STRING:
        return string_agrees(c, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
    case JSON_REAL:
        return number_agrees(c, value);
    case JSON_TRUE:
        return take_word(c, "true");
    case JSON_FALSE:
        return take_word(c, "false");
    case JSON_NULL:
        break;
    }
    return take_word(c, "null");
}

bool attncl__json_agrees(const char *text, size_t bytes, json_t *value)
{
    struct cursor c = {text, text + bytes};

    return value_agrees(&c, value);
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
    if (!value || !attncl__json_agrees(text, bytes, value)) {
        json_decref(value);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "JSON of %zu bytes", bytes);
    }
    *ret = value;
    return ATTNCL_OK;
}
