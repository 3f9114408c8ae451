// SPDX-License-Identifier: MIT
//
// A growable string.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/strbuf.h"

// Ensures capacity for `more` bytes and the terminating zero.
static bool try_reserve(struct strbuf *t, size_t more)
{
    size_t need, capacity = t->capacity ? t->capacity : 256;
    if (t->failed || !ckd_add_size(t->used, more, &need) || !ckd_add_size(need, 1, &need))
        return false;
    if (need <= t->capacity)
        return true;
    while (capacity < need)
        if (!ckd_mul_size(capacity, 2, &capacity))
            capacity = need;
    char *data = attncl__grow_array(t->data, capacity, 1);
    if (!data)
        return false;
    t->data = data;
    t->capacity = capacity;
    return true;
}

static bool reserve(struct strbuf *t, size_t more)
{
    t->failed = !try_reserve(t, more);
    return !t->failed;
}

void attncl__strbuf_add_bytes(struct strbuf *t, const void *data, size_t bytes)
{
    if (!reserve(t, bytes))
        return;
    if (bytes > 0)
        memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = '\0';
}

void attncl__strbuf_add(struct strbuf *t, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        t->failed = true;
    else if (reserve(t, (size_t)n)) {
        vsnprintf(t->data + t->used, (size_t)n + 1, fmt, again);
        t->used += (size_t)n;
    }
    va_end(again);
}

void attncl__strbuf_add_quoted(struct strbuf *t, const char *text)
{
    attncl__strbuf_add_bytes(t, "\"", 1);
    for (; *text; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            attncl__strbuf_add(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            attncl__strbuf_add(t, "\\u%04x", c);
        else
            attncl__strbuf_add_bytes(t, text, 1);
    }
    attncl__strbuf_add_bytes(t, "\"", 1);
}

void attncl__strbuf_free(struct strbuf *t)
{
    attncl__free(t->data);
    *t = STRBUF_EMPTY;
}
