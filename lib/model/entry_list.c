// SPDX-License-Identifier: MIT
// The entries of a description, with their texts.

#include "model/describe.h"

#include "base/alloc.h"
#include "base/try.h"

enum { N_TEXTS = 5 };

struct listed_entry {
    attncl_entry entry;
    char *text[N_TEXTS]; // owns name, shape, standard, choices, condition
};

attncl_status attncl__entry_add(struct entry_list *entries, const attncl_entry *entry)
{
    struct listed_entry new = {.entry = *entry};
    const char **const texts[N_TEXTS] = {&new.entry.name, &new.entry.shape, &new.entry.standard,
                                         &new.entry.choices, &new.entry.condition};
    struct listed_entry *list =
        attncl__grow_list(entries->list, entries->n, &entries->capacity, sizeof *list);
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "description of %zu entries", entries->n);
    entries->list = list;
    bool complete = true;
    for (int i = 0; i < N_TEXTS; ++i) {
        if (!*texts[i])
            continue;
        new.text[i] = attncl__copy_text(*texts[i]);
        complete &= new.text[i] != NULL;
        *texts[i] = new.text[i];
    }
    new.entry.struct_size = sizeof new.entry;
    list[entries->n++] = new;
    REQUIRE(complete, ATTNCL_ERR_NO_MEMORY, "description of %zu entries", entries->n);
    return ATTNCL_OK;
}

attncl_status attncl__entry_add_shaped(struct entry_list *entries, attncl_entry *entry,
                                       struct strbuf *shape)
{
    entry->shape = shape->data;
    const attncl_status status = shape->failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "shape of %s", entry->name)
                                     : attncl__entry_add(entries, entry);
    attncl__strbuf_free(shape);
    return status;
}

const attncl_entry *attncl__entry_at(const struct entry_list *entries, size_t i)
{
    return i < entries->n ? &entries->list[i].entry : NULL;
}

void attncl__entry_list_free(struct entry_list *entries)
{
    for (size_t i = 0; i < entries->n; ++i)
        for (int k = 0; k < N_TEXTS; ++k)
            attncl__free(entries->list[i].text[k]);
    attncl__free(entries->list);
}
