// SPDX-License-Identifier: MIT
//
// UTF-8 text, by utf8proc.

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

size_t attncl__utf8_decode(const char *text, size_t bytes, uint32_t *code_ret)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &code);

    if (length <= 0)
        return 0;
    *code_ret = (uint32_t)code;
    return (size_t)length;
}

// True when n bytes are a proper prefix of a character: the lowest or the highest continuation bytes complete it.
static bool begins_character(const char *text, size_t n)
{
    char lowest[UTF8_MAX_BYTES], highest[UTF8_MAX_BYTES];
    uint32_t code;

    memset(lowest, 0x80, sizeof lowest);
    memset(highest, 0xbf, sizeof highest);
    memcpy(lowest, text, n);
    memcpy(highest, text, n);
    return attncl__utf8_decode(lowest, sizeof lowest, &code) > n ||
           attncl__utf8_decode(highest, sizeof highest, &code) > n;
}

size_t attncl__utf8_measure_invalid(const char *text, size_t bytes, bool *cut_ret)
{
    size_t n = 1;

    while (n < bytes && n + 1 < UTF8_MAX_BYTES && begins_character(text, n + 1))
        ++n;
    *cut_ret = n == bytes && begins_character(text, n);
    return n;
}

size_t attncl__utf8_encode(uint32_t code, char ret[UTF8_MAX_BYTES])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)ret);
}

bool attncl__is_utf8(const char *text)
{
    uint32_t code;
    size_t length = 1;

    for (size_t left = strlen(text); left > 0 && length > 0; left -= length, text += length)
        length = attncl__utf8_decode(text, left, &code);
    return length > 0;
}
