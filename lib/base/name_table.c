// SPDX-License-Identifier: MIT
//
// Names hashed by FNV-1a.  The table is at most half full, so every search meets a free entry.

#include "base/name_table.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

// Returns the name's entry, or the free entry where it belongs.
static struct name_entry *find_entry(const struct name_table *t, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *c = name; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    size_t at = (size_t)(hash ^ hash >> 32) & (t->capacity - 1);
    while (t->entries[at].name && strcmp(t->entries[at].name, name) != 0)
        at = (at + 1) & (t->capacity - 1);
    return &t->entries[at];
}

int attncl__name_find(const struct name_table *t, const char *name)
{
    const struct name_entry *entry = t->n ? find_entry(t, name) : NULL;
    return entry && entry->name ? entry->index : -1;
}

attncl_status attncl__name_add(struct name_table *t, const char *name, int index)
{
    if (2 * (t->n + 1) > t->capacity) {
        struct name_table larger = {.n = t->n, .capacity = t->capacity ? 2 * t->capacity : 16};
        larger.entries = attncl__alloc_array(larger.capacity, sizeof *larger.entries);
        REQUIRE(larger.entries, ATTNCL_ERR_NO_MEMORY, "%zu names", t->n + 1);
        for (size_t i = 0; i < t->capacity; ++i)
            if (t->entries[i].name)
                *find_entry(&larger, t->entries[i].name) = t->entries[i];
        attncl__free(t->entries);
        *t = larger;
    }
    *find_entry(t, name) = (struct name_entry){name, index};
    ++t->n;
    return ATTNCL_OK;
}

void attncl__name_table_free(struct name_table *t)
{
    attncl__free(t->entries);
    *t = (struct name_table){0};
}
