// SPDX-License-Identifier: MIT
//
// Descriptions: the keys of an architecture's configuration.

#include "base/alloc.h"
#include "base/try.h"
#include "model/entry_list.h"
#include "model/model.h"

static attncl_status add_key(const struct arch_class *arch, struct config_keys *keys, size_t index,
                             struct entry_list *entries)
{
    static const char *const types[] = {
        [CONFIG_INT] = "integer",   [CONFIG_NUMBER] = "number", [CONFIG_BOOL] = "true or false",
        [CONFIG_WORD] = "word",     [CONFIG_INTS] = "integers", [CONFIG_NUMBERS] = "numbers",
        [CONFIG_OBJECT] = "object",
    };
    const struct config_key *key = &keys->list[index];
    struct strbuf name = STRBUF_EMPTY, choices = STRBUF_EMPTY, condition = STRBUF_EMPTY;
    if (key->parent != CONFIG_NONE)
        attncl__strbuf_add(&name, "%s.", keys->list[key->parent].name);
    attncl__strbuf_add(&name, "%s", key->name);
    for (size_t i = 0; i < key->n_words; ++i)
        attncl__strbuf_add(&choices, "%s%s", i ? ", " : "", key->words[i]);
    attncl_status status = attncl__arch_key_condition(arch, keys, index, &condition);
    const attncl_entry entry = {
        .kind = ATTNCL_ENTRY_KEY,
        .optional = key->otherwise[0] != 0,
        .name = name.data,
        .type = types[key->type],
        .standard = key->otherwise[0] && !key->varies ? key->otherwise : NULL,
        .choices = choices.data,
        .condition = condition.data,
        .rank = -1,
    };
    if (status == ATTNCL_OK)
        status = name.failed || choices.failed || condition.failed
                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "key %s", key->name)
                     : attncl__entry_add(entries, &entry);
    attncl__strbuf_free(&name);
    attncl__strbuf_free(&choices);
    attncl__strbuf_free(&condition);
    return status;
}

attncl_status attncl__describe_keys(const struct arch_class *arch, struct entry_list *entries)
{
    struct config_keys *keys = attncl__alloc(sizeof *keys);
    REQUIRE(keys, ATTNCL_ERR_NO_MEMORY, "keys of arch %s", arch->name);
    attncl_status status = attncl__arch_keys(arch, keys);
    for (size_t i = 0; status == ATTNCL_OK && i < keys->n; ++i)
        status = add_key(arch, keys, i, entries);
    attncl__free(keys);
    return status;
}
