// SPDX-License-Identifier: MIT

#include "model/config_note.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct config_key *attncl__config_find_key(const struct config *config, const char *name)
{
    struct config_keys *keys = config->keys;
    for (size_t i = 0; i < keys->n; ++i)
        if (keys->list[i].parent == config->parent && strcmp(keys->list[i].name, name) == 0)
            return &keys->list[i];
    return NULL;
}

struct config_key *attncl__config_note(struct config *config, const char *name,
                                       enum config_type type)
{
    struct config_keys *keys = config->keys;
    struct config_key *key = attncl__config_find_key(config, name);
    if (!key) {
        assert(keys->n < CONFIG_MAX_KEYS);
        key = &keys->list[keys->n++];
        *key = (struct config_key){.name = name,
                                   .parent = config->parent,
                                   .type = type,
                                   .cause = keys->cause,
                                   .variant = keys->variant};
    }
    key->is_read |= config->object != NULL;
    key->run = keys->run;
    return key;
}

void attncl__config_note_default(struct config_key *key, const char *otherwise)
{
    if (key->otherwise[0])
        key->varies |= strcmp(key->otherwise, otherwise) != 0;
    else
        snprintf(key->otherwise, sizeof key->otherwise, "%s", otherwise);
}

struct config_key *attncl__config_note_number(struct config *config, const char *name,
                                              enum config_type type, double min)
{
    struct config_key *key = attncl__config_note(config, name, type);
    key->min = min;
    return key;
}

void attncl__config_note_word(struct config_key *key, const char *word)
{
    for (size_t i = 0; i < key->n_words; ++i)
        if (strcmp(key->words[i], word) == 0)
            return;
    assert(key->n_words < CONFIG_MAX_WORDS);
    key->words[key->n_words++] = word;
}

int attncl__config_variant(const struct config *config, const struct config_key *key)
{
    const struct config_keys *keys = config->keys;
    int cause = keys->cause, variant = keys->variant;
    while (cause != CONFIG_NONE && &keys->list[cause] != key) {
        variant = keys->list[cause].variant;
        cause = keys->list[cause].cause;
    }
    return cause == CONFIG_NONE ? CONFIG_NONE : variant;
}
