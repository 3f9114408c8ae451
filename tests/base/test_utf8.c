// SPDX-License-Identifier: MIT
// UTF-8: what is refused, and the codes of what is not.

#include <string.h>

#include "base/utf8.h"
#include "support/test.h"

NO_DEVICE;

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

TEST(codes_and_lengths)
{
    static const struct {
        const char *text;
        size_t length;
        uint32_t code;
    } rows[] = {
        {"A", 1, 'A'},
        {"\x7f", 1, 0x7f},
        {"\xc3\xa9", 2, 0xe9},
        {"\xdf\xbf", 2, 0x7ff},
        {"\xe0\xa0\x80", 3, 0x800},
        {"\xe2\x82\xac", 3, 0x20ac},
        {"\xef\xbf\xbf", 3, 0xffff},
        {"\xf0\x90\x80\x80", 4, 0x10000},
        {"\xf0\x9f\x98\x80", 4, 0x1f600},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        uint32_t code = 1;
        ck_assert_uint_eq(attncl__utf8_decode(rows[i].text, strlen(rows[i].text), &code),
                          rows[i].length);
        ck_assert_uint_eq(code, rows[i].code);
        char bytes[UTF8_MAX_BYTES];
        ck_assert_uint_eq(attncl__utf8_encode(code, bytes), rows[i].length);
        ck_assert_mem_eq(bytes, rows[i].text, rows[i].length);
        for (size_t cut = 0; cut < rows[i].length; ++cut)
            ck_assert_uint_eq(attncl__utf8_decode(rows[i].text, cut, &code), 0);
    }
}

// As Unicode 15 recommends: one U+FFFD for the longest beginning of a character.
TEST(broken_characters_have_a_length)
{
    static const struct {
        const char *text;
        size_t bytes, length;
        bool is_cut;
    } rows[] = {
        {"\xff", 1, 1, false},      {"\x80", 1, 1, false},      {"\xc3", 1, 1, true},
        {"\xc3(", 2, 1, false},     {"\xe0", 1, 1, true},       {"\xe0\x80", 2, 1, false},
        {"\xe2\x82", 2, 2, true},   {"\xe2\x82(", 3, 2, false}, {"\xed", 1, 1, true},
        {"\xed\xa0", 2, 1, false},  {"\xf0", 1, 1, true},       {"\xf0\x9f\x98", 3, 3, true},
        {"\xf0\x9f(", 3, 2, false}, {"\xf4\x90", 2, 1, false},
    };

    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        bool is_cut;
        ck_assert_uint_eq(attncl__utf8_measure_invalid(rows[i].text, rows[i].bytes, &is_cut),
                          rows[i].length);
        ck_assert_msg(is_cut == rows[i].is_cut, "row %zu", i);
    }
}
