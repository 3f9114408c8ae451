// SPDX-License-Identifier: MIT
// For descriptions of model files.
#ifndef ATTNCL_MODEL_DESCRIBE_H
#define ATTNCL_MODEL_DESCRIBE_H

#include "attncl/describe.h"
#include "base/strbuf.h"
#include "io/json.h"

// -- entry_list.c: the entries of a description, with their texts

struct entry_list {
    struct listed_entry *list; // owned
    size_t n, capacity;
};

// Copies the entry and its texts; `type` and `problem` outlive the list.
attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry);
// The same with this shape, which is freed.
attncl_status attncl__entry_add_shaped(struct entry_list *entries, attncl_entry *entry,
                                       struct strbuf *shape);
// NULL past the end.
const attncl_entry *attncl__entry_at(const struct entry_list *entries, size_t i);
void attncl__entry_list_free(struct entry_list *entries);

// The keys of a table and of those inside it, in order.
enum { CONFIG_MAX_ROWS = 160, CONFIG_MAX_NESTING = 4 };
struct config_row {
    const struct key *key;
    const char *object;                               // that it is in; NULL: the whole
    const struct condition *when[CONFIG_MAX_NESTING]; // all hold where it is read
    int n_when;
};
size_t attncl__config_rows(const struct key *table, struct config_row rows[CONFIG_MAX_ROWS]);

// Adds the keys of the architecture's configuration.
struct arch_class;
attncl_status attncl__describe_keys(const struct arch_class *arch, struct entry_list *entries);

// -- symbols.c: extents as expressions in the integers of a configuration, 128 as "d_ffn/2"

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
