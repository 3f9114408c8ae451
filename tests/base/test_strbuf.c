// SPDX-License-Identifier: MIT
// Growable strings, JSON strings.

#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "support/test.h"

NO_DEVICE;

TEST(text_grows)
{
    const size_t before = attncl__alloc_live();
    struct strbuf t = STRBUF_EMPTY;
    for (int i = 0; i < 1000; ++i)
        attncl__strbuf_add(&t, "%d,", i % 10);
    attncl__strbuf_add_bytes(&t, "a\0b", 3);
    attncl__strbuf_add_bytes(&t, NULL, 0);
    attncl__strbuf_add(&t, "%s", "");
    ck_assert(!t.failed);
    ck_assert_uint_eq(t.used, 2003);
    ck_assert_int_eq(strncmp(t.data + 1994, "7,8,9,", 6), 0);
    ck_assert_mem_eq(t.data + 2000, "a\0b\0", 4);
    attncl__strbuf_free(&t);
    attncl__strbuf_free(&t);
    ck_assert_ptr_null(t.data);
    ck_assert_uint_eq(attncl__alloc_live(), before);
}

TEST(short_memory_is_remembered)
{
    struct strbuf t = STRBUF_EMPTY;
    attncl__strbuf_add(&t, "kept");
    attncl__alloc_fail_at(1);
    attncl__strbuf_add(&t, "%1000d", 1);
    attncl__alloc_fail_at(0);
    attncl__strbuf_add(&t, "later");
    ck_assert(t.failed);
    ck_assert_str_eq(t.data, "kept");
    attncl__strbuf_free(&t);
    ck_assert(!t.failed);
}

TEST(a_length_that_overflows_is_a_failure)
{
    struct strbuf t = STRBUF_EMPTY;
    attncl__strbuf_add(&t, "x");
    attncl__strbuf_add_bytes(&t, "", SIZE_MAX);
    ck_assert(t.failed);
    attncl__strbuf_free(&t);
}

TEST(quoted_text_is_json)
{
    struct strbuf t = STRBUF_EMPTY;
    attncl__strbuf_add_quoted(&t, "a\"b\\c/\n\x01\x1f\x7f\xc3\xa9");
    ck_assert_str_eq(t.data, "\"a\\\"b\\\\c/\\u000a\\u0001\\u001f\\u007f\xc3\xa9\"");
    attncl__strbuf_free(&t);
    attncl__strbuf_add_quoted(&t, "");
    ck_assert_str_eq(t.data, "\"\"");
    attncl__strbuf_free(&t);
}
