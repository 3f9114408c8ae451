// SPDX-License-Identifier: MIT
//
// A growing piece of text.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/text.h"

// Room for `more` bytes and the terminating zero.
static bool reserve(struct text *t, size_t more)
{
    size_t need;
    if (t->failed || !ckd_add_size(t->used, more, &need) || !ckd_add_size(need, 1, &need)) {
        t->failed = true;
        return false;
    }
    if (need <= t->room)
        return true;
    size_t room = t->room ? t->room : 256;
    while (room < need)
        if (!ckd_mul_size(room, 2, &room))
            room = need;
    char *data = attncl__grow_array(t->data, room, 1);
    if (!data) {
        t->failed = true;
        return false;
    }
    t->data = data;
    t->room = room;
    return true;
}

void attncl__text_add_bytes(struct text *t, const void *data, size_t bytes)
{
    if (!reserve(t, bytes))
        return;
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = '\0';
}

void attncl__text_add(struct text *t, const char *fmt, ...)
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

void attncl__text_free(struct text *t)
{
    attncl__free(t->data);
    *t = TEXT_EMPTY;
}
