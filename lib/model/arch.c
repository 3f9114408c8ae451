// SPDX-License-Identifier: MIT
//
// The table of architectures, their keys, and reading a configuration.

#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "base/try.h"
#include "model/arch.h"

static const struct arch_class *const table[] = {
#define ARCH(file, name) &attncl__arch_##name,
#include "model/arch_list.def"
#undef ARCH
};
enum { N_ARCHS = sizeof table / sizeof table[0] };

const struct arch_class *attncl__arch_at(size_t index)
{
    return index < N_ARCHS ? table[index] : NULL;
}

attncl_status attncl__arch_find(const char *name, const struct arch_class **ret)
{
    struct suggestion s = {.word = name};
    for (size_t i = 0; i < N_ARCHS; ++i) {
        if (strcmp(table[i]->name, name) == 0) {
            *ret = table[i];
            return ATTNCL_OK;
        }
        attncl__suggestion_add(&s, table[i]->name);
    }
    return FAIL(ATTNCL_ERR_FORMAT, "arch %.100s is not known%s", name,
                attncl__suggestion_text(&s, "archs"));
}

// -- keys

// One run of configure() without an object.  Its status does not matter: the keys do.
static void explore(const struct arch_class *arch, struct config_keys *keys, void *settings)
{
    struct config config = {.keys = keys, .parent = CONFIG_NONE};
    ++keys->run;
    memset(settings, 0, arch->settings_bytes);
    (void)arch->configure(&config, settings);
}

static int count_variants(const struct config_key *key)
{
    if (key->type == CONFIG_WORD)
        return (int)key->n_words;
    return key->type == CONFIG_BOOL || (key->type == CONFIG_INT && key->otherwise[0]);
}

// Every key with each of its values in turn, the others being what led to the key.  Runs add keys
// at the end of the list.
attncl_status attncl__arch_keys(const struct arch_class *arch, struct config_keys *keys)
{
    *keys = (struct config_keys){.cause = CONFIG_NONE, .variant = CONFIG_NONE};
    if (!arch->configure)
        return ATTNCL_OK;
    void *settings = attncl__alloc_zero(arch->settings_bytes);
    REQUIRE(settings, ATTNCL_ERR_NO_MEMORY, "settings of arch %s", arch->name);
    for (keys->scale = 3; keys->scale >= 1; keys->scale -= 2) // defaults that differ vary
        explore(arch, keys, settings);
    keys->scale = 1;
    for (size_t i = 0; i < keys->n; ++i) {
        for (int variant = 0; variant < count_variants(&keys->list[i]); ++variant) {
            keys->cause = (int)i;
            keys->variant = variant;
            explore(arch, keys, settings);
        }
    }
    keys->cause = keys->variant = CONFIG_NONE;
    attncl__free(settings);
    return ATTNCL_OK;
}

// Whether the key is read where another one has its variant (CONFIG_NONE: its default).
static bool is_read_with(const struct arch_class *arch, struct config_keys *keys, size_t index,
                         int cause, int variant, void *settings)
{
    keys->cause = variant == CONFIG_NONE ? keys->list[cause].cause : cause;
    keys->variant = variant == CONFIG_NONE ? keys->list[cause].variant : variant;
    explore(arch, keys, settings);
    keys->cause = keys->variant = CONFIG_NONE;
    return keys->list[index].run == keys->run;
}

// "layer is a, b", or "layer is not c" where those are more.
static void add_word_condition(const struct config_key *cause, unsigned read, struct strbuf *text)
{
    const unsigned all = (1U << cause->n_words) - 1;
    unsigned n_read = 0;
    if (read == 0 || read == all)
        return;
    for (size_t i = 0; i < cause->n_words; ++i)
        n_read += read >> i & 1;
    const bool is_not = 2 * n_read > cause->n_words;
    const unsigned listed = is_not ? all & ~read : read;
    const char *before = is_not ? " is not " : " is ";
    attncl__strbuf_add(text, "%s%s", text->used ? " and " : "", cause->name);
    for (size_t i = 0; i < cause->n_words; ++i) {
        if (!(listed >> i & 1))
            continue;
        attncl__strbuf_add(text, "%s%s", before, cause->words[i]);
        before = ", ";
    }
}

attncl_status attncl__arch_key_condition(const struct arch_class *arch, struct config_keys *keys,
                                         size_t index, struct strbuf *text)
{
    void *settings = attncl__alloc_zero(arch->settings_bytes);
    REQUIRE(settings, ATTNCL_ERR_NO_MEMORY, "settings of arch %s", arch->name);
    for (int i = 0; i < (int)keys->n; ++i) {
        const struct config_key *cause = &keys->list[i];
        unsigned read = 0;
        if (i == (int)index)
            continue;
        for (int variant = 0; cause->type == CONFIG_WORD && variant < (int)cause->n_words;
             ++variant)
            read |= (unsigned)is_read_with(arch, keys, index, i, variant, settings) << variant;
        if (cause->type == CONFIG_WORD)
            add_word_condition(cause, read, text);
        if (cause->type != CONFIG_BOOL)
            continue;
        const bool standard = is_read_with(arch, keys, index, i, CONFIG_NONE, settings);
        const bool other = is_read_with(arch, keys, index, i, 0, settings);
        if (standard != other)
            attncl__strbuf_add(text, "%s%s is %s", text->used ? " and " : "", cause->name,
                               standard == (strcmp(cause->otherwise, "true") == 0) ? "true"
                                                                                   : "false");
    }
    attncl__free(settings);
    return ATTNCL_OK;
}

// A key that is not known is refused first: it is why another one is missing.
static attncl_status configure(const struct arch_class *arch, struct config_keys *keys,
                               const struct json *object, void *settings)
{
    struct config config = {.object = object, .keys = keys, .parent = CONFIG_NONE};
    TRY(attncl__arch_keys(arch, keys));
    const attncl_status status = arch->configure ? arch->configure(&config, settings) : ATTNCL_OK;
    TRY(attncl__config_check_keys(&config));
    return status;
}

attncl_status attncl__arch_configure(const struct arch_class *arch, const struct json *object,
                                     void *settings)
{
    struct config_keys *keys = attncl__alloc(sizeof *keys);
    REQUIRE(keys, ATTNCL_ERR_NO_MEMORY, "keys of arch %s", arch->name);
    const attncl_status status = configure(arch, keys, object, settings);
    attncl__free(keys);
    return status;
}
