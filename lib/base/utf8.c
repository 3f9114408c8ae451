// SPDX-License-Identifier: MIT
//
// UTF-8 text.

#include <string.h>

#include "base/utf8.h"

// Unicode 15, table 3-7: the limits of the second byte exclude overlong forms, surrogates and codes
// over 10FFFF.
static size_t length_of(unsigned char a, unsigned char b)
{
    if (a < 0x80)
        return 1;
    if (a >= 0xc2 && a <= 0xdf)
        return b >= 0x80 && b <= 0xbf ? 2 : 0;
    if (a >= 0xe0 && a <= 0xef)
        return b >= (a == 0xe0 ? 0xa0 : 0x80) && b <= (a == 0xed ? 0x9f : 0xbf) ? 3 : 0;
    if (a >= 0xf0 && a <= 0xf4)
        return b >= (a == 0xf0 ? 0x90 : 0x80) && b <= (a == 0xf4 ? 0x8f : 0xbf) ? 4 : 0;
    return 0;
}

size_t attncl__utf8_decode(const char *text, size_t bytes, uint32_t *code_ret)
{
    static const unsigned char first_bits[UTF8_MAX_BYTES + 1] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *p = (const unsigned char *)text;

    if (bytes == 0)
        return 0;
    const size_t length = length_of(p[0], bytes > 1 ? p[1] : 0);
    if (length == 0 || length > bytes)
        return 0;
    uint32_t code = p[0] & first_bits[length];
    for (size_t i = 1; i < length; ++i) {
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
        code = code << 6 | (p[i] & 0x3fU);
    }
    *code_ret = code;
    return length;
}

size_t attncl__utf8_broken(const char *text, size_t bytes, bool *cut_ret)
{
    const unsigned char *p = (const unsigned char *)text;
    // A second byte that may follow most first ones; after E0 and F0 only higher ones may.
    const unsigned char second = bytes > 1 ? p[1] : p[0] == 0xf0 || p[0] == 0xe0 ? 0xbf : 0x80;
    const size_t length = length_of(p[0], second);
    size_t n = 1;

    while (length > 0 && n < length && n < bytes && p[n] >= 0x80 && p[n] <= 0xbf)
        ++n;
    *cut_ret = length > 0 && n == bytes;
    return n;
}

size_t attncl__utf8_encode(uint32_t code, char ret[UTF8_MAX_BYTES])
{
    static const unsigned char first[UTF8_MAX_BYTES + 1] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; code >>= 6)
        ret[i] = (char)(0x80 | (code & 0x3f));
    ret[0] = (char)(first[length] | code);
    return length;
}

bool attncl__is_utf8(const char *text)
{
    size_t left = strlen(text);
    uint32_t code;

    while (left > 0) {
        const size_t length = attncl__utf8_decode(text, left, &code);
        if (length == 0)
            return false;
        text += length;
        left -= length;
    }
    return true;
}
