// SPDX-License-Identifier: MIT
// Growable strings, JSON strings, UTF-8.

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

// The definition: decode, then encode as short as possible.
static bool decodes(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        const size_t length = p[i] < 0x80       ? 1
                              : p[i] >> 5 == 6  ? 2
                              : p[i] >> 4 == 14 ? 3
                              : p[i] >> 3 == 30 ? 4
                                                : 0;
        if (length == 0 || i + length > n)
            return false;
        uint32_t code = length == 1 ? p[i] : p[i] & (0x7fu >> length);
        for (size_t j = 1; j < length; ++j) {
            if (p[i + j] >> 6 != 2)
                return false;
            code = code << 6 | (p[i + j] & 0x3f);
        }
        if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
        i += length;
    }
    return true;
}

// Bytes at the edges of every range of the encoding, in all strings of up to four of them.
TEST(utf8_is_what_decodes)
{
    static const unsigned char edges[] = {0x01, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                          0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
                                          0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { N = sizeof edges };
    unsigned char text[5];
    int n_valid = 0;
    for (int k = 0; k < N * N * N * N; ++k) {
        int rest = k;
        for (int i = 0; i < 4; ++i, rest /= N)
            text[i] = edges[rest % N];
        for (size_t n = 1; n <= 4; ++n) { // shorter ones are seen many times; cheap enough
            const unsigned char cut = text[n];
            text[n] = '\0';
            const bool valid = attncl__is_utf8((const char *)text);
            if (valid != decodes(text, n))
                ck_abort_msg("%02x %02x %02x %02x, %zu bytes", text[0], text[1], text[2], text[3],
                             n);
            n_valid += valid;
            text[n] = cut;
        }
    }
    ck_assert_int_gt(n_valid, 100);
    ck_assert(attncl__is_utf8(""));
}
