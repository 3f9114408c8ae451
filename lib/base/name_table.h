// SPDX-License-Identifier: MIT
// A hash table with open addressing that maps names to indices.
#ifndef ATTNCL_BASE_NAME_TABLE_H
#define ATTNCL_BASE_NAME_TABLE_H

#include <stddef.h>

#include "attncl/status.h"

struct name_entry {
    const char *name; // borrowed; NULL: free
    int index;
};

struct name_table { // starts zeroed
    struct name_entry *entries;
    size_t n, capacity; // a power of two
};

// Returns the name's index, -1 if it is absent.
int attncl__name_find(const struct name_table *t, const char *name);
// Adds a name that is absent.
attncl_status attncl__name_add(struct name_table *t, const char *name, int index);
void attncl__name_table_free(struct name_table *t);

#endif
