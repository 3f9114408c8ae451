// SPDX-License-Identifier: MIT
//
// The forms that parameters' shapes have: k, k/2 (a gating unit), 3*k (a GRU's gates), k*l, k/l
// (heads and their width), k + l (an attention decoder's input), k + 1 (a feedback transformer).

#include "model/describe.h"

#include <inttypes.h>

static void add(struct symbols *symbols, const char *name, int64_t value)
{
    if (symbols->n < MAX_SYMBOLS && value > 1)
        symbols->list[symbols->n++] = (struct symbol){name, value};
}

void attncl__symbols_read(struct symbols *symbols, const struct json *config)
{
    const char *key = NULL;
    while ((key = attncl__json_next(config, key)) != NULL) {
        const struct json *inner;
        int64_t value;
        size_t n;
        bool present;
        if (attncl__json_int(config, key, &present, &value) == ATTNCL_OK)
            add(symbols, key, value);
        else if (attncl__json_ints(config, key, &present, 1, &value, &n) == ATTNCL_OK && n == 1)
            add(symbols, key, value);
        else if (attncl__json_object(config, key, &present, &inner) == ATTNCL_OK)
            attncl__symbols_read(symbols, inner);
    }
}

static bool write_one(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    for (size_t i = 0; i < symbols->n; ++i) {
        if (symbols->list[i].value == value) {
            attncl__strbuf_add(text, "%s", symbols->list[i].name);
            return true;
        }
    }
    for (size_t i = 0; i < symbols->n; ++i) {
        const struct symbol *k = &symbols->list[i];
        if (value != k->value * 3 && value * 2 != k->value)
            continue;
        attncl__strbuf_add(text, value > k->value ? "3*%s" : "%s/2", k->name);
        return true;
    }
    return false;
}

static bool write_two(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    static const char forms[] = "*/+";
    for (int form = 0; form < 3; ++form) {
        for (size_t i = 0; i < symbols->n * symbols->n; ++i) {
            const struct symbol *k = &symbols->list[i / symbols->n];
            const struct symbol *l = &symbols->list[i % symbols->n];
            const int64_t results[] = {k->value * l->value,
                                       k->value % l->value ? -1 : k->value / l->value,
                                       k->value + l->value};
            if (k == l || results[form] != value)
                continue;
            attncl__strbuf_add(text, form == 2 ? "%s %c %s" : "%s%c%s", k->name, forms[form],
                               l->name);
            return true;
        }
    }
    return false;
}

void attncl__symbols_write(const struct symbols *symbols, int64_t value, struct strbuf *text)
{
    if (symbols && value > 1) {
        if (write_one(symbols, value, text) || write_two(symbols, value, text))
            return;
        for (size_t i = 0; i < symbols->n; ++i) {
            if (symbols->list[i].value + 1 == value) {
                attncl__strbuf_add(text, "%s + 1", symbols->list[i].name);
                return;
            }
        }
    }
    attncl__strbuf_add(text, "%" PRId64, value);
}
