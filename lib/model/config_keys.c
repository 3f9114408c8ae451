// SPDX-License-Identifier: MIT
//
// What follows from the list of keys that were read: others are refused, defaults are put in.

#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "base/try.h"
#include "model/config.h"

static attncl_status refuse_key(const struct config *config, const char *name)
{
    struct suggestion s = {.word = name};
    for (size_t i = 0; i < config->keys->n; ++i)
        if (config->keys->list[i].parent == config->parent)
            attncl__suggestion_add(&s, config->keys->list[i].name);
    return FAIL(ATTNCL_ERR_FORMAT, "key %.100s is not known%s", name,
                attncl__suggestion_text(&s, "keys"));
}

attncl_status attncl__config_check_keys(const struct config *config)
{
    const char *name = NULL;
    while ((name = attncl__json_next(config->object, name)) != NULL) {
        const struct config_key *key = attncl__config_find_key(config, name);
        if (!key)
            return refuse_key(config, name);
        struct config inner = {.keys = config->keys, .parent = (int)(key - config->keys->list)};
        bool present;
        if (key->type != CONFIG_OBJECT ||
            attncl__json_object(config->object, name, &present, &inner.object) != ATTNCL_OK)
            continue; // a value of another type is what reading it refuses
        const attncl_status status = attncl__config_check_keys(&inner);
        if (status != ATTNCL_OK) {
            attncl__error_prefix("%s", name);
            return status;
        }
    }
    return ATTNCL_OK;
}

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
