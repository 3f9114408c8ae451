// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as a tokenizer.json, a zero, and a text.  What is accepted encodes the text if that is UTF-8, and
// what it decodes is UTF-8.

#include <string.h>

#include "attncl/tokenizer.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"

static bool is_utf8(const char *text, size_t bytes)
{
    uint32_t code;

    for (size_t at = 0, length; at < bytes; at += length)
        if ((length = attncl__utf8_decode(text + at, bytes - at, &code)) == 0)
            return false;
    return true;
}

static void use(attncl_tokenizer *t, const char *text, size_t bytes)
{
    attncl_tokenizer_stream *stream;
    const int32_t *ids;
    const char *part;
    size_t n, n_part;

    if (!fuzz_is_ok(attncl_tokenizer_encode(t, text, bytes, 1, &ids, &n))) {
        ids = (const int32_t *)(const void *)text; // any numbers
        n = (uintptr_t)text % sizeof *ids == 0 ? bytes / sizeof *ids : 0;
    }
    MUST(attncl_tokenizer_decode(t, ids, n, 0, &part, &n_part) == ATTNCL_OK);
    MUST(is_utf8(part, n_part));
    MUST(attncl_tokenizer_stream_create(t, 1, &stream) == ATTNCL_OK);
    for (size_t i = 0; i <= n; ++i) {
        if (i < n)
            MUST(attncl_tokenizer_stream_add(stream, ids + i, 1, &part, &n_part) == ATTNCL_OK);
        else
            MUST(attncl_tokenizer_stream_end(stream, &part, &n_part) == ATTNCL_OK);
        MUST(is_utf8(part, n_part));
    }
    attncl_tokenizer_stream_destroy(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t bytes = zero ? (size_t)(zero - data) : size, rest = zero ? size - bytes - 1 : 0;
    char *file = malloc(bytes + 1), *text = malloc(rest + 1);
    attncl_tokenizer *t = NULL;

    MUST(file && text);
    if (size > 0)
        memcpy(file, data, bytes);
    if (zero)
        memcpy(text, zero + 1, rest);
    if (fuzz_is_ok(attncl_tokenizer_create(file, bytes, &t)))
        use(t, text, rest);
    else
        MUST(!t);
    attncl_tokenizer_destroy(t);
    free(file);
    free(text);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_text(data, size, max_size, seed);
}
