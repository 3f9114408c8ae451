// SPDX-License-Identifier: MIT
// A growable string buffer.  Starts as STRBUF_EMPTY.  `failed` is set when memory is short and stays
// set, so callers check it once, at the end.
#ifndef ATTNCL_BASE_STRBUF_H
#define ATTNCL_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *data;            // zero-terminated once anything was added
    size_t used, capacity; // bytes
    bool failed;
};

#define STRBUF_EMPTY ((struct strbuf){0})

void attncl__strbuf_add(struct strbuf *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void attncl__strbuf_add_bytes(struct strbuf *t, const void *data, size_t bytes);
// Appends `text` as a JSON string with quotes.
void attncl__strbuf_add_quoted(struct strbuf *t, const char *text);
void attncl__strbuf_free(struct strbuf *t);

#endif
