// SPDX-License-Identifier: MIT
// Strict UTF-8: no overlong forms, no surrogates, no codes over 10FFFF.
#ifndef ATTNCL_BASE_UTF8_H
#define ATTNCL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4, UTF8_CODES = 0x110000 };

// Returns the length of the first character of `bytes` bytes, and its code; 0 when it is malformed or
// incomplete.  A zero byte is a character.
size_t attncl__utf8_decode(const char *text, size_t bytes, uint32_t *code_ret);

// For bytes that attncl__utf8_decode() refuses: returns how many of them (at least 1) one U+FFFD replaces.  *cut_ret:
// whether more bytes could complete them to a character.
size_t attncl__utf8_measure_invalid(const char *text, size_t bytes, bool *cut_ret);

// Encodes one character and returns its length in bytes.
size_t attncl__utf8_encode(uint32_t code, char ret[UTF8_MAX_BYTES]);

// True when the zero-terminated `text` is UTF-8.
bool attncl__is_utf8(const char *text);

#endif
