// SPDX-License-Identifier: MIT
// JSON objects: typed getters, limits, and what is refused.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/json.h"
#include "support/test.h"

NO_DEVICE;

static struct json *config;

static void up(void)
{
    static const char text[] =
        "{\"d_model\": 128, \"low\": -9223372036854775808, \"high\": 9223372036854775807, \"eps\": "
        "1e-5,"
        " \"two\": 2.0, \"bias\": true, \"no\": false, \"kind\": \"gelu\", \"shape\": [4, 8, 0],"
        " \"betas\": [0.9, 0.999], \"empty\": [], \"sub\": {\"n\": 1}, \"nothing\": null}";
    ck_ok(attncl__json_parse(text, sizeof text - 1, JSON_CONFIG_LIMITS, &config));
}

static void down(void)
{
    attncl__json_free(config);
    config = NULL;
}

FIXTURE(up, down);

TEST(values_come_by_type)
{
    bool present = false, flag = false;
    int64_t n = 0, shape[4];
    double x = 0;
    const char *text = NULL;
    const struct json *sub = NULL;
    size_t count = 0;

    ck_ok(attncl__json_int(config, "d_model", &present, &n));
    ck_assert(present && n == 128);
    ck_ok(attncl__json_int(config, "low", NULL, &n));
    ck_assert(n == INT64_MIN);
    ck_ok(attncl__json_int(config, "high", NULL, &n));
    ck_assert(n == INT64_MAX);
    ck_ok(attncl__json_double(config, "eps", NULL, &x));
    ck_assert(x == 1e-5);
    ck_ok(attncl__json_double(config, "d_model", NULL, &x));
    ck_assert(x == 128.0);
    ck_ok(attncl__json_bool(config, "bias", NULL, &flag));
    ck_assert(flag);
    ck_ok(attncl__json_bool(config, "no", NULL, &flag));
    ck_assert(!flag);
    ck_ok(attncl__json_text(config, "kind", NULL, &text));
    ck_assert_str_eq(text, "gelu");
    ck_ok(attncl__json_ints(config, "shape", NULL, 3, shape, &count));
    ck_assert(count == 3 && shape[0] == 4 && shape[1] == 8 && shape[2] == 0);
    ck_ok(attncl__json_ints(config, "empty", NULL, 0, shape, &count));
    ck_assert_uint_eq(count, 0);
    ck_ok(attncl__json_object(config, "sub", NULL, &sub));
    ck_ok(attncl__json_int(sub, "n", NULL, &n));
    ck_assert(n == 1);
    double betas[3] = {0};
    ck_ok(attncl__json_doubles(config, "betas", NULL, 2, betas));
    ck_assert(betas[0] == 0.9 && betas[1] == 0.999);
    for (size_t i = 1; i <= 3; i += 2)
        ck_fails(attncl__json_doubles(config, "betas", NULL, i, betas), ATTNCL_ERR_FORMAT,
                 "betas has 2 entries, expected");
}

LOOP_TEST(lists_of_numbers, JSON_MAX_NUMBERS - 1, JSON_MAX_NUMBERS + 2)
{
    struct json_numbers numbers;
    struct json *got = NULL;
    char text[3 * JSON_MAX_NUMBERS] = "{\"a\": [2.5";
    size_t used = strlen(text);
    for (int i = 1; i < _i; ++i)
        used += (size_t)snprintf(text + used, sizeof text - used, ",%d", i % 10);
    used += (size_t)snprintf(text + used, sizeof text - used, "]}");
    ck_ok(attncl__json_parse(text, used, JSON_CONFIG_LIMITS, &got));
    if (_i > JSON_MAX_NUMBERS) {
        ck_fails(attncl__json_numbers(got, "a", NULL, &numbers), ATTNCL_ERR_FORMAT,
                 "a has 129 entries, at most 128 are possible");
    } else {
        ck_ok(attncl__json_numbers(got, "a", NULL, &numbers));
        ck_assert(numbers.n == (size_t)_i && numbers.list[0] == 2.5 &&
                  numbers.list[_i - 1] == (_i - 1) % 10);
    }
    attncl__json_free(got);
}

TEST(escapes_are_utf8)
{
    static const char text[] = "{\"a\": \"\\u007f\\u0080\\u07ff\\u0800\\uffff"
                               "\\ud800\\udc00\\udbff\\udfff\"}";
    struct json *got = NULL;
    const char *a = NULL;
    ck_ok(attncl__json_parse(text, sizeof text - 1, JSON_CONFIG_LIMITS, &got));
    ck_ok(attncl__json_text(got, "a", NULL, &a));
    ck_assert_str_eq(a, "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"
                        "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    attncl__json_free(got);
}

TEST(numbers_are_written_to_be_read_back)
{
    static const double values[] = {0.1 + 0.2, 2};
    for (size_t i = 0; i < COUNT_OF(values); ++i) {
        char *text = NULL;
        ck_ok(attncl__json_set_number(config, "eps", values[i]));
        ck_ok(attncl__json_write_value(config, "eps", &text));
        ck_assert_str_eq(text, i ? "2.0" : "0.30000000000000004");
        attncl__free(text);
    }
}

TEST(an_absent_key_leaves_the_default_or_fails)
{
    bool present = true, flag = true;
    int64_t n = 7;
    double x = 7;
    const char *text = "default";
    const struct json *sub = config;
    size_t count = 7;

    ck_ok(attncl__json_int(config, "absent", &present, &n));
    ck_assert(!present && n == 7);
    ck_ok(attncl__json_double(config, "absent", &present, &x));
    ck_ok(attncl__json_bool(config, "absent", &present, &flag));
    ck_ok(attncl__json_text(config, "absent", &present, &text));
    ck_ok(attncl__json_ints(config, "absent", &present, 1, &n, &count));
    ck_ok(attncl__json_object(config, "absent", &present, &sub));
    ck_assert(!present && x == 7 && flag && n == 7 && count == 7 && sub == config);
    ck_assert_str_eq(text, "default");

    ck_fails(attncl__json_int(config, "absent", NULL, &n), ATTNCL_ERR_FORMAT, "absent is missing");
}

#define REFUSED(call, words) ck_fails(call, ATTNCL_ERR_FORMAT, words)

TEST(a_value_of_another_type_is_refused_by_name)
{
    bool present, flag;
    int64_t n = 7;
    double x;
    const char *text;
    const struct json *sub;
    size_t count;

    REFUSED(attncl__json_int(config, "kind", &present, &n),
            "kind is a string, expected an integer");
    REFUSED(attncl__json_int(config, "two", &present, &n),
            "two is a number with a fraction or exponent, expected an integer");
    REFUSED(attncl__json_int(config, "bias", &present, &n), "bias is true, expected an integer");
    REFUSED(attncl__json_int(config, "nothing", &present, &n), "nothing is null");
    REFUSED(attncl__json_double(config, "no", &present, &x), "no is false, expected a number");
    REFUSED(attncl__json_bool(config, "d_model", &present, &flag),
            "d_model is an integer, expected true or false");
    REFUSED(attncl__json_text(config, "sub", &present, &text),
            "sub is an object, expected a string");
    REFUSED(attncl__json_object(config, "shape", &present, &sub),
            "shape is an array, expected an object");
    REFUSED(attncl__json_ints(config, "sub", &present, 4, &n, &count),
            "sub is an object, expected an array of integers");
    REFUSED(attncl__json_ints(config, "betas", &present, 4, &n, &count),
            "betas[0] is a number with a fraction or exponent, expected an integer");
    REFUSED(attncl__json_ints(config, "shape", &present, 2, &n, &count),
            "shape has 3 entries, at most 2 are possible");
    ck_assert_int_eq(n, 7);
}

TEST(keys_come_in_the_texts_order)
{
    static const char *const keys[] = {"d_model", "low",   "high",  "eps",   "two", "bias",   "no",
                                       "kind",    "shape", "betas", "empty", "sub", "nothing"};
    size_t i = 0;
    for (const char *key = attncl__json_next(config, NULL); key;
         key = attncl__json_next(config, key))
        ck_assert_str_eq(key, keys[i++]);
    ck_assert_uint_eq(i, COUNT_OF(keys));
    ck_assert_uint_eq(attncl__json_count(config), i);
    ck_assert(attncl__json_has(config, "nothing") && !attncl__json_has(config, "Nothing"));
}

struct bad {
    const char *text, *words;
};
static const struct bad bads[] = {
    {"", "no valid JSON"},
    {"d_model: 8", "no valid JSON"},
    {"{\"a\": 1} {\"a\": 1}", "no valid JSON"},
    {"{\"a\": 1,}", "no valid JSON"},
    {"{\"a\": 01}", "no valid JSON"},
    {"{\"a\": .5}", "no valid JSON"},
    {"{\"a\": 1e999}", "no valid JSON"},
    {"{\"a\": 9223372036854775808}", "no valid JSON"},
    {"{\"a\": Infinity}", "no valid JSON"},
    {"{\"a\": 1, \"a\": 1}", "duplicate"},
    {"[1]", "an array, expected an object"},
    {"{\"a\":[[[[[[[[]]]]]]]]}", "nested deeper than 8 levels at byte 13"},
    {"{\"a\": \"\\ud800\"}", "no valid JSON"},
    {"{\"a\": \"\\u0000\"}", "no valid JSON"},
    {"{\"a\": \"\n\"}", "no valid JSON"},
    {"{\"a\": \"unfinished", "no valid JSON"},
    {"{\"a\": \"unfinished\\", "no valid JSON"},
};

LOOP_TEST(what_is_no_object_is_refused, 0, COUNT_OF(bads))
{
    struct json *got = NULL;
    ck_fails(attncl__json_parse(bads[_i].text, strlen(bads[_i].text), JSON_CONFIG_LIMITS, &got),
             ATTNCL_ERR_FORMAT, bads[_i].words);
    ck_assert_ptr_null(got);
}

TEST(limits_count_what_is_outside_of_strings)
{
    struct json *got = NULL;
    const struct json_limits tight = {2, 4, true}; // {, "a", [, 1
    static const char fits[] = "{\"a[[[{{,,-1.5\\\"]\":[1]}";
    ck_ok(attncl__json_parse(fits, sizeof fits - 1, &tight, &got));
    attncl__json_free(got);

    char number[JSON_MAX_NUMBER + 8];
    for (int n = JSON_MAX_NUMBER; n <= JSON_MAX_NUMBER + 1; ++n) {
        got = NULL;
        snprintf(number, sizeof number, "{\"a\":0.%0*d}", n - 2, 1);
        const attncl_status status =
            attncl__json_parse(number, strlen(number), JSON_CONFIG_LIMITS, &got);
        ck_assert_int_eq(status, n == JSON_MAX_NUMBER ? ATTNCL_OK : ATTNCL_ERR_FORMAT);
        attncl__json_free(got);
    }

    got = NULL;
    REFUSED(attncl__json_parse("{\"a\":[1,2]}", 11, &tight, &got), "more than 4 values");
    REFUSED(attncl__json_parse("{\"a\":[[]]}", 10, &tight, &got), "deeper than 2 levels");
    REFUSED(attncl__json_parse("{\"a\":-1}", 8, &tight, &got), "the number -1 at byte 5");
    ck_assert_ptr_null(got);
}

TEST(elements_come_one_after_another)
{
    static const char text[] = " [1, [2, \"]\"], {\"a\": 3}, \"\\u00e9\x7f\xc3\xa9\"]",
                      open[] = "[1}";
    static const char *const want[] = {"1", "[2, \"]\"]", "{\"a\": 3}", "\"\\u00e9\x7f\xc3\xa9\""};
    struct json_members elements = attncl__json_elements((struct json_span){text, sizeof text - 1});
    char to[20], *end;

    for (size_t i = 0; i < COUNT_OF(want); ++i) {
        ck_assert(attncl__json_next_member(&elements));
        ck_assert(elements.key.bytes == 0 && elements.value.bytes == strlen(want[i]));
        ck_assert_mem_eq(elements.value.text, want[i], elements.value.bytes);
    }
    ck_ok(attncl__json_parse_text(&elements.value, "key", JSON_CONFIG_LIMITS, to, &end));
    ck_assert_str_eq(to, "\xc3\xa9\x7f\xc3\xa9");
    ck_assert(!attncl__json_next_member(&elements));
    ck_ok(elements.status);
    elements = attncl__json_elements((struct json_span){"{}", 2});
    ck_fails(elements.status, ATTNCL_ERR_FORMAT, "an array expected");
    ck_assert(!attncl__json_next_member(&elements));
    elements = attncl__json_elements((struct json_span){open, sizeof open - 1});
    ck_assert(attncl__json_next_member(&elements) && !attncl__json_next_member(&elements));
    ck_fails(elements.status, ATTNCL_ERR_FORMAT, "a comma or ]");
    elements.value = (struct json_span){"\"a\nb\"", 5};
    ck_fails(attncl__json_parse_text(&elements.value, "key", JSON_CONFIG_LIMITS, to, &end),
             ATTNCL_ERR_FORMAT, "unexpected newline");
}

TEST(items_are_objects)
{
    static const char text[] = "{\"list\": [{\"n\": 1}, {\"n\": 2}], \"odd\": [1], \"not\": 1}";
    const struct json *item;
    struct json *object;
    int64_t n;

    ck_ok(attncl__json_parse(text, sizeof text - 1, JSON_CONFIG_LIMITS, &object));
    ck_ok(attncl__json_item(object, "list", 1, &item));
    ck_ok(attncl__json_int(item, "n", NULL, &n));
    ck_assert(n == 2);
    ck_ok(attncl__json_item(object, "list", 2, &item));
    ck_assert(!item);
    ck_ok(attncl__json_item(object, "none", 0, &item));
    ck_assert(!item);
    ck_fails(attncl__json_item(object, "odd", 0, &item), ATTNCL_ERR_FORMAT,
             "odd[0] is an integer, expected an object");
    ck_fails(attncl__json_item(object, "not", 0, &item), ATTNCL_ERR_FORMAT,
             "not is an integer, expected an array of objects");
    attncl__json_free(object);
}
