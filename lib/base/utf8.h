// SPDX-License-Identifier: MIT
// UTF-8 text: strictly as Unicode has it, without overlong forms, surrogates and codes over 10FFFF.
#ifndef ATTNCL_BASE_UTF8_H
#define ATTNCL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4, UTF8_CODES = 0x110000 };

// The length of the character at `text`, of which `bytes` are there, and its code; 0 when it is not
// well formed or ends after them.  A zero byte is a character.
size_t attncl__utf8_decode(const char *text, size_t bytes, uint32_t *code_ret);

// Of bytes that attncl__utf8_decode() refuses: how many of them, at least 1, one U+FFFD replaces.  *cut_ret: whether
// they begin a character that may go on behind `bytes`.
size_t attncl__utf8_broken(const char *text, size_t bytes, bool *cut_ret);

// The character of a code; returns its length.
size_t attncl__utf8_encode(uint32_t code, char ret[UTF8_MAX_BYTES]);

// Whether `text`, which ends with a zero, is UTF-8.
bool attncl__is_utf8(const char *text);

#endif
