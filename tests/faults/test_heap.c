// SPDX-License-Identifier: MIT
// A request for host memory fails in the libraries that this one calls: Jansson, which goes on with a
// character less, and libcrypto, whose start crashes.

#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "store/private_dir.h"
#include "support/test.h"

enum { MAX_REQUESTS = 2000 };

// The heap of both: which request fails, counted from 1 (0: none), and whether all after it do.
static size_t fail_at, n_requests, n_refused;
static bool fail_all;
static long n_blocks;

static bool refuse(void)
{
    ++n_requests;
    const bool refused = fail_at && (n_requests == fail_at || (fail_all && n_requests > fail_at));
    n_refused += refused;
    return refused;
}

static void plan(size_t at, bool all)
{
    fail_at = at;
    fail_all = all;
    n_requests = n_refused = 0;
}

static void *request(size_t bytes)
{
    if (refuse())
        return NULL;
    ++n_blocks;
    return malloc(bytes);
}

static void give_back(void *block)
{
    n_blocks -= block != NULL;
    free(block);
}

static void *crypto_request(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return refuse() ? NULL : malloc(bytes);
}

static void *crypto_grow(void *block, size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return refuse() ? NULL : realloc(block, bytes);
}

static void crypto_give_back(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block);
}

static void up(void)
{
    json_object_seed(1); // or Jansson opens a file for it
    json_set_alloc_funcs(request, give_back);
    ck_assert_int_eq(CRYPTO_set_mem_functions(crypto_request, crypto_grow, crypto_give_back), 1);
}

static void down(void)
{
    plan(0, false);
}

FIXTURE_ONCE(up, down);

static const char text[] =
    "{\"n_vocab\": 1234567, \"d_model\": 64, \"number_of_the_layers\": 12345678901234567,"
    " \"kind\": \"a value longer than a first buffer, with g\\u00e9lu \\ud83d\\ude00 "
    "\\\"\\n\\u0041\","
    " \"eps\": 1.2345678901234567e-05, \"list\": [true, false, null, [], {}, -0, -1, 2E3],"
    " \"sub\": {\"a long key of the configuration\": -9223372036854775808, \"\": \"\"}}";

LOOP_TEST(json_of_short_memory, 0, 2)
{
    size_t n = 1;
    for (; n < MAX_REQUESTS; ++n) {
        struct json *object = NULL;
        plan(n, _i != 0);
        const attncl_status status =
            attncl__json_parse(text, sizeof text - 1, JSON_CONFIG_LIMITS, &object);
        const bool refused = n_refused > 0;
        plan(0, false);
        if (!refused) {
            ck_ok(status);
            attncl__json_free(object);
            break;
        }
        ck_assert_msg(status == ATTNCL_ERR_NO_MEMORY, "request %zu: %s (%s)", n,
                      attncl_status_name(status), attncl_last_error());
        ck_assert_ptr_null(object);
        ck_assert_int_eq(n_blocks, 0);
    }
    ck_assert_uint_gt(n, 20);
    ck_assert_uint_lt(n, MAX_REQUESTS);
    ck_assert_int_eq(n_blocks, 0);
}

LOOP_TEST(a_value_of_short_memory, 0, 2)
{
    static const char value[] = "\"a value that is longer than a first buffer\"";
    struct json *object = NULL;
    ck_ok(attncl__json_parse("{}", 2, JSON_CONFIG_LIMITS, &object));
    size_t n = 1;
    for (; n < MAX_REQUESTS; ++n) {
        const char *found = NULL;
        plan(n, _i != 0);
        const attncl_status status = attncl__json_set(object, "key", value);
        const bool refused = n_refused > 0;
        plan(0, false);
        if (!refused) {
            ck_ok(status);
            ck_ok(attncl__json_text(object, "key", NULL, &found));
            ck_assert_uint_eq(strlen(found), sizeof value - 3);
            break;
        }
        ck_assert_int_eq(status, ATTNCL_ERR_NO_MEMORY);
        ck_assert(!attncl__json_has(object, "key"));
    }
    ck_assert_uint_gt(n, 3);
    ck_assert_uint_lt(n, MAX_REQUESTS);
    attncl__json_free(object);
    ck_assert_int_eq(n_blocks, 0);
}

// Every mistake is still one, and not short memory.
TEST(mistakes_stay_mistakes)
{
    static const char *const texts[] = {
        "{\"a\": 1",    "{\"a\": 01}",   "{\"a\": \"\\ud800\"}", "{\"a\": 1, \"a\": 2}",
        "{\"a\": tru}", "{\"a\": 1e999}"};
    for (size_t i = 0; i < COUNT_OF(texts); ++i) {
        struct json *object = NULL;
        ck_fails(attncl__json_parse(texts[i], strlen(texts[i]), JSON_CONFIG_LIMITS, &object),
                 ATTNCL_ERR_FORMAT, "no valid JSON");
        ck_assert_ptr_null(object);
    }
}

// The first hash of the process, without any memory.
TEST(names_of_cache_entries)
{
    char name[CACHE_NAME_BYTES];
    plan(1, true);
    attncl__cache_entry_make_name((struct bytes){"abc", 3}, name);
    plan(0, false);
    ck_assert_str_eq(name,
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.program");
}
