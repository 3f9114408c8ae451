// SPDX-License-Identifier: MIT
//
// A configuration with its defaults.

#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "model/config.h"

static attncl_status set_word(struct json *object, const struct config_key *key)
{
    struct strbuf quoted = STRBUF_EMPTY;
    attncl__strbuf_add_quoted(&quoted, key->otherwise);
    const attncl_status status = quoted.failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "default of %s", key->name)
                                     : attncl__json_set(object, key->name, quoted.data);
    attncl__strbuf_free(&quoted);
    return status;
}

static attncl_status set_default(struct json *object, const struct config_key *key)
{
    switch (key->type) {
    case CONFIG_WORD:
        return set_word(object, key);
    case CONFIG_NUMBER:
        return attncl__json_set_number(object, key->name, key->number);
    case CONFIG_BOOL:
        if (strcmp(key->otherwise, "true") != 0 && strcmp(key->otherwise, "false") != 0)
            return ATTNCL_OK; // as the file has it
        break;
    default:
        break;
    }
    return attncl__json_set(object, key->name, key->otherwise);
}

attncl_status attncl__config_fill(const struct config *config, struct json *object)
{
    const struct config_keys *keys = config->keys;
    for (size_t i = 0; i < keys->n; ++i) {
        const struct config_key *key = &keys->list[i];
        if (key->parent != config->parent)
            continue;
        if (key->type == CONFIG_OBJECT) {
            const struct config inner = {.keys = config->keys, .parent = (int)i};
            struct json *inner_object;
            TRY(attncl__json_inner(object, key->name, &inner_object));
            TRY(attncl__config_fill(&inner, inner_object));
        } else if (key->otherwise[0] && !attncl__json_has(object, key->name)) {
            TRY(set_default(object, key));
        }
    }
    return ATTNCL_OK;
}
