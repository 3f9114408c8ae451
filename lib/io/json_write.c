// SPDX-License-Identifier: MIT
//
// Changes and writes JSON objects.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/try.h"
#include "io/json_jansson.h"

static attncl_status set_value(struct json *object, const char *key, json_t *value)
{
    REQUIRE(value && json_object_set_new(jansson(object), key, value) == 0, ATTNCL_ERR_NO_MEMORY,
            "JSON key %s", key);
    return ATTNCL_OK;
}

attncl_status attncl__json_inner(struct json *object, const char *key, struct json **ret)
{
    if (!attncl__json_has(object, key))
        TRY(set_value(object, key, json_object()));
    const struct json *inner;
    TRY(attncl__json_object(object, key, NULL, &inner));
    *ret = (struct json *)(void *)json_object_get(jansson(object), key);
    return ATTNCL_OK;
}

attncl_status attncl__json_set(struct json *object, const char *key, const char *text)
{
    json_t *value = NULL;
    TRY(attncl__prefix_failure(
        attncl__json_load(text, strlen(text), JSON_CONFIG_LIMITS, JSON_DECODE_ANY, &value), "%s",
        key));
    return set_value(object, key, value);
}

attncl_status attncl__json_set_int(struct json *object, const char *key, int64_t value)
{
    return set_value(object, key, json_integer(value));
}

attncl_status attncl__json_set_number(struct json *object, const char *key, double value)
{
    return set_value(object, key, json_real(value));
}

// Writes the fewest digits, but at least MIN_DIGITS, that read back as the same number, with a fraction or
// an exponent so that it does not become an integer.
static void write_real(double value, struct strbuf *text)
{
    enum { MIN_DIGITS = 6, MAX_DIGITS = 17 };
    char number[40];
    for (int digits = MIN_DIGITS; digits <= MAX_DIGITS; ++digits) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    attncl__strbuf_add(text, "%s%s", number, strpbrk(number, ".e") ? "" : ".0");
}

static void new_line(struct strbuf *text, int indent)
{
    enum { INDENT_WIDTH = 2 };
    attncl__strbuf_add(text, "\n%*s", indent * INDENT_WIDTH, "");
}

static void write_any(const json_t *value, int indent, struct strbuf *text);

// indent < 0: write one line.
static void write_object(const json_t *object, int indent, struct strbuf *text)
{
    const struct json *keys = (const struct json *)(const void *)object;
    const int inner = indent < 0 ? indent : indent + 1;
    const char *before = "";
    attncl__strbuf_add(text, "{");
    for (const char *key = NULL; (key = attncl__json_next(keys, key)) != NULL; before = ",") {
        attncl__strbuf_add(text, "%s%s", before, indent < 0 && *before ? " " : "");
        if (indent >= 0)
            new_line(text, inner);
        attncl__strbuf_add_quoted(text, key);
        attncl__strbuf_add(text, ": ");
        write_any(json_object_get(object, key), inner, text);
    }
    if (indent >= 0 && *before)
        new_line(text, indent);
    attncl__strbuf_add(text, "}");
}

static void write_array(const json_t *array, struct strbuf *text)
{
    attncl__strbuf_add(text, "[");
    for (size_t i = 0; i < json_array_size(array); ++i) {
        attncl__strbuf_add(text, "%s", i ? ", " : "");
        write_any(json_array_get(array, i), -1, text);
    }
    attncl__strbuf_add(text, "]");
}

// Recursion is limited, since the depth of a parsed text is.
static void write_any(const json_t *value, int indent, struct strbuf *text)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(value, indent, text);
        break;
    case JSON_ARRAY:
        write_array(value, text);
        break;
    case JSON_STRING:
        attncl__strbuf_add_quoted(text, json_string_value(value));
        break;
    case JSON_INTEGER:
        attncl__strbuf_add(text, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(json_real_value(value), text);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        attncl__strbuf_add(text, "%s", attncl__json_type_words(value));
    }
}

static attncl_status write_text(const json_t *value, int indent, char **text_ret)
{
    struct strbuf text = STRBUF_EMPTY;
    write_any(value, indent, &text);
    if (text.failed) {
        attncl__strbuf_free(&text);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "JSON text");
    }
    *text_ret = text.data;
    return ATTNCL_OK;
}

attncl_status attncl__json_write(const struct json *object, enum json_layout layout,
                                 char **text_ret)
{
    return write_text(jansson(object), layout == JSON_LINES ? 0 : -1, text_ret);
}

attncl_status attncl__json_write_value(const struct json *object, const char *key, char **text_ret)
{
    const json_t *value = json_object_get(jansson(object), key);
    *text_ret = NULL;
    return value ? write_text(value, -1, text_ret) : ATTNCL_OK;
}
