// SPDX-License-Identifier: MIT
//
// Parses and reads JSON objects by Jansson (docs/dev/decisions/0001-jansson-json.md).

#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "base/utf8.h"
#include "io/json_jansson.h"

attncl_status attncl__json_parse(const char *text, size_t bytes, const struct json_limits *limits,
                                 struct json **object_ret)
{
    json_t *root;

    TRY(attncl__json_load(text, bytes, limits, 0, &root));
    if (!json_is_object(root)) {
        json_decref(root);
        return FAIL(ATTNCL_ERR_FORMAT, "the JSON text is an array, expected an object");
    }
    *object_ret = (struct json *)(void *)root;
    return ATTNCL_OK;
}

void attncl__json_free(struct json *object)
{
    json_decref((json_t *)(void *)object);
}

const char *attncl__json_type_words(const json_t *value)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number with a fraction or exponent",
        [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",
        [JSON_NULL] = "null",
    };
    return words[json_typeof(value)];
}

static attncl_status load_value(const struct json_span *value, const char *key,
                                const struct json_limits *limits, json_type type,
                                const char *type_name, json_t **ret)
{
    TRY(attncl__json_load(value->text, value->bytes, limits, JSON_DECODE_ANY, ret));
    if (json_typeof(*ret) == type)
        return ATTNCL_OK;
    const char *found = attncl__json_type_words(*ret);
    json_decref(*ret);
    return FAIL(ATTNCL_ERR_FORMAT, "%.200s is %s, expected %s", key, found, type_name);
}

attncl_status attncl__json_parse_value(const struct json_span *value, const char *key,
                                       const struct json_limits *limits, struct json **object_ret)
{
    json_t *root;

    TRY(load_value(value, key, limits, JSON_OBJECT, "an object", &root));
    *object_ret = (struct json *)(void *)root;
    return ATTNCL_OK;
}

// True for a string that is UTF-8 without escapes.
static bool is_plain(const struct json_span *value)
{
    const char *last = value->text + value->bytes - 1;
    uint32_t code;

    if (value->bytes < 2 || *value->text != '"' || *last != '"')
        return false;
    for (const char *c = value->text + 1; c < last;) {
        const size_t length = attncl__utf8_decode(c, (size_t)(last - c), &code);
        if (length == 0 || code < ' ' || code == '\\')
            return false;
        c += length;
    }
    return true;
}

attncl_status attncl__json_parse_text(const struct json_span *value, const char *key,
                                      const struct json_limits *limits, char *to, char **end)
{
    json_t *root = NULL;
    const char *text = value->text + 1;
    size_t bytes = value->bytes - 2;

    if (!is_plain(value)) {
        TRY(load_value(value, key, limits, JSON_STRING, "a string", &root));
        text = json_string_value(root);
        bytes = json_string_length(root);
    }
    memcpy(to, text, bytes);
    to[bytes] = 0;
    *end = to + bytes + 1;
    json_decref(root);
    return ATTNCL_OK;
}

// Sets of json_type, as bits.
enum {
    INTEGERS = 1 << JSON_INTEGER,
    NUMBERS = INTEGERS | 1 << JSON_REAL,
    BOOLS = 1 << JSON_TRUE | 1 << JSON_FALSE,
    TEXTS = 1 << JSON_STRING,
    OBJECTS = 1 << JSON_OBJECT,
    ARRAYS = 1 << JSON_ARRAY,
};

// *ret: the value of `key`, which must be of one of the types; NULL when it is absent and optional.
static attncl_status look_up(const struct json *object, const char *key, bool *present, int types,
                             const char *words, const json_t **ret)
{
    *ret = json_object_get(jansson(object), key);
    REQUIRE(*ret || present, ATTNCL_ERR_FORMAT, "%s is missing", key);
    if (present)
        *present = *ret != NULL;
    REQUIRE(!*ret || types >> json_typeof(*ret) & 1, ATTNCL_ERR_FORMAT, "%s is %s, expected %s",
            key, attncl__json_type_words(*ret), words);
    return ATTNCL_OK;
}

#define DEFINE_GETTER(name, type, types, words, convert)                                           \
    attncl_status name(const struct json *object, const char *key, bool *present, type *value)     \
    {                                                                                              \
        const json_t *found;                                                                       \
        TRY(look_up(object, key, present, types, words, &found));                                  \
        if (found)                                                                                 \
            *value = convert(found);                                                               \
        return ATTNCL_OK;                                                                          \
    }
DEFINE_GETTER(attncl__json_int, int64_t, INTEGERS, "an integer", json_integer_value)
DEFINE_GETTER(attncl__json_double, double, NUMBERS, "a number", json_number_value)
DEFINE_GETTER(attncl__json_bool, bool, BOOLS, "true or false", json_is_true)
DEFINE_GETTER(attncl__json_text, const char *, TEXTS, "a string", json_string_value)
DEFINE_GETTER(attncl__json_object, const struct json *, OBJECTS, "an object",
              (const struct json *)(const void *))

attncl_status attncl__json_item(const struct json *object, const char *key, size_t i,
                                const struct json **value)
{
    const json_t *found;
    bool present;

    TRY(look_up(object, key, &present, ARRAYS, "an array of objects", &found));
    const json_t *item = json_array_get(found, i);
    REQUIRE(!item || json_is_object(item), ATTNCL_ERR_FORMAT, "%s[%zu] is %s, expected an object",
            key, i, item ? attncl__json_type_words(item) : "");
    *value = (const struct json *)(const void *)item;
    return ATTNCL_OK;
}

static attncl_status check_entries(const json_t *array, const char *key, int types,
                                   const char *words)
{
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *entry = json_array_get(array, i);
        REQUIRE(types >> json_typeof(entry) & 1, ATTNCL_ERR_FORMAT, "%s[%zu] is %s, expected %s",
                key, i, attncl__json_type_words(entry), words);
    }
    return ATTNCL_OK;
}

attncl_status attncl__json_ints(const struct json *object, const char *key, bool *present,
                                size_t capacity, int64_t *values, size_t *n)
{
    const json_t *found;
    TRY(look_up(object, key, present, ARRAYS, "an array of integers", &found));
    if (!found)
        return ATTNCL_OK;
    const size_t count = json_array_size(found);
    REQUIRE(count <= capacity, ATTNCL_ERR_FORMAT, "%s has %zu entries, at most %zu are possible",
            key, count, capacity);
    TRY(check_entries(found, key, INTEGERS, "an integer"));
    for (size_t i = 0; i < count; ++i)
        values[i] = json_integer_value(json_array_get(found, i));
    *n = count;
    return ATTNCL_OK;
}

attncl_status attncl__json_flags(const struct json *object, const char *key, bool *present,
                                 struct json_flags *flags)
{
    int64_t list[JSON_MAX_FLAGS];
    *flags = (struct json_flags){0};
    TRY(attncl__json_ints(object, key, present, JSON_MAX_FLAGS, list, &flags->n));
    REQUIRE(!*present || flags->n >= 1, ATTNCL_ERR_FORMAT, "%s is empty", key);
    for (size_t i = 0; i < flags->n; ++i) {
        REQUIRE(list[i] == 0 || list[i] == 1, ATTNCL_ERR_FORMAT,
                "%s holds %" PRId64 ", expected 0 or 1", key, list[i]);
        flags->list[i] = list[i] == 1;
    }
    return ATTNCL_OK;
}

bool attncl__json_flag(const struct json_flags *flags, int64_t i)
{
    return flags->n == 0 || flags->list[(size_t)i % flags->n];
}

attncl_status attncl__json_pairs(const struct json *object, const char *key, bool *present,
                                 struct json_pairs *pairs)
{
    const json_t *found;
    TRY(look_up(object, key, present, INTEGERS | ARRAYS, "an integer or an array of pairs",
                &found));
    if (!found)
        return ATTNCL_OK;
    if (json_is_integer(found)) {
        *pairs = (struct json_pairs){1, {{0, json_integer_value(found)}}};
        return ATTNCL_OK;
    }
    const size_t n = json_array_size(found);
    REQUIRE(n >= 1 && n <= JSON_MAX_PAIRS, ATTNCL_ERR_FORMAT,
            "%s has %zu entries, possible are 1 to %d", key, n, JSON_MAX_PAIRS);
    for (size_t i = 0; i < n; ++i) {
        const json_t *pair = json_array_get(found, i);
        const json_t *first = json_array_get(pair, 0), *second = json_array_get(pair, 1);
        REQUIRE(json_array_size(pair) == 2 && json_is_integer(first) && json_is_integer(second),
                ATTNCL_ERR_FORMAT, "%s[%zu] is not a pair of integers", key, i);
        pairs->list[i][0] = json_integer_value(first);
        pairs->list[i][1] = json_integer_value(second);
    }
    pairs->n = n;
    return ATTNCL_OK;
}

attncl_status attncl__json_doubles(const struct json *object, const char *key, bool *present,
                                   size_t n, double *values)
{
    const json_t *found;
    TRY(look_up(object, key, present, ARRAYS, "an array of numbers", &found));
    if (!found)
        return ATTNCL_OK;
    REQUIRE(json_array_size(found) == n, ATTNCL_ERR_FORMAT, "%s has %zu entries, expected %zu", key,
            json_array_size(found), n);
    TRY(check_entries(found, key, NUMBERS, "a number"));
    for (size_t i = 0; i < n; ++i)
        values[i] = json_number_value(json_array_get(found, i));
    return ATTNCL_OK;
}

attncl_status attncl__json_numbers(const struct json *object, const char *key, bool *present,
                                   struct json_numbers *numbers)
{
    numbers->n = json_array_size(json_object_get(jansson(object), key)); // 0 if it is no array
    REQUIRE(numbers->n <= JSON_MAX_NUMBERS, ATTNCL_ERR_FORMAT,
            "%s has %zu entries, at most %d are possible", key, numbers->n, JSON_MAX_NUMBERS);
    return attncl__json_doubles(object, key, present, numbers->n, numbers->list);
}

size_t attncl__json_count(const struct json *object)
{
    return json_object_size(jansson(object));
}

bool attncl__json_has(const struct json *object, const char *key)
{
    return json_object_get(jansson(object), key) != NULL;
}

const char *attncl__json_next(const struct json *object, const char *key)
{
    void *iter = key ? json_object_iter_next(jansson(object), json_object_key_to_iter(key))
                     : json_object_iter(jansson(object));
    return iter ? json_object_iter_key(iter) : NULL;
}
