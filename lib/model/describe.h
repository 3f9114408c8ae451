// SPDX-License-Identifier: MIT
// For descriptions of model files.
#ifndef ATTNCL_MODEL_DESCRIBE_H
#define ATTNCL_MODEL_DESCRIBE_H

#include "attncl/describe.h"
#include "base/strbuf.h"
#include "io/json.h"

// The entries of a description, with their texts.
enum { N_TEXTS = 5 };

struct listed_entry {
    attncl_entry entry;
    char *text[N_TEXTS]; // owns name, shape, standard, choices, condition
};

struct entry_list {
    struct listed_entry *list; // owned
    size_t n, capacity;
};

// Copies the entry and its texts; `type` and `problem` outlive the list.
attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry);

// The keys of a table and of those inside it, in order.
enum { CONFIG_MAX_ROWS = 240, CONFIG_MAX_NESTING = 6 };
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

#endif
