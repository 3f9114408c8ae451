// SPDX-License-Identifier: MIT
// A growing piece of text.  Starts as TEXT_EMPTY; a failed append (memory is short) is remembered:
// look at `failed` once, at the end.
#ifndef ATTNCL_BASE_TEXT_H
#define ATTNCL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; // zero-terminated once anything was added
    size_t used;
    size_t room;
    bool failed;
};

#define TEXT_EMPTY ((struct text){0})

void attncl__text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void attncl__text_add_bytes(struct text *t, const void *data, size_t bytes);
void attncl__text_add_quoted(struct text *t, const char *text); // as a JSON string, quotes included
void attncl__text_free(struct text *t);

bool attncl__text_is_utf8(const char *text);

#endif
