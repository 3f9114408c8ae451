// SPDX-License-Identifier: MIT
// Extents as expressions in the integers of a configuration: 128 as "d_ffn/2".
#ifndef ATTNCL_MODEL_SYMBOLS_H
#define ATTNCL_MODEL_SYMBOLS_H

#include "base/strbuf.h"
#include "io/json.h"

enum { MAX_SYMBOLS = 24 };

struct symbols {
    struct symbol {
        const char *name; // of the configuration
        int64_t value;
    } list[MAX_SYMBOLS];
    size_t n;
};

// Adds the integers of an object and of those inside it, 1 excepted: it is a constant in shapes.
void attncl__symbols_read(struct symbols *symbols, const struct json *config);

// Adds the number, as an expression if one symbol or two give it.  `symbols` NULL: the number.
void attncl__symbols_write(const struct symbols *symbols, int64_t value, struct strbuf *text);

#endif
