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
    keys->scale = 1;
    explore(arch, keys, settings);
    keys->scale = 3; // defaults that differ vary
    explore(arch, keys, settings);
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

static void add_name(const struct config_keys *keys, const struct config_key *key,
                     struct strbuf *text)
{
    attncl__strbuf_add(text, "%s", text->used ? " and " : "");
    if (key->parent != CONFIG_NONE)
        attncl__strbuf_add(text, "%s.", keys->list[key->parent].name);
    attncl__strbuf_add(text, "%s", key->name);
}

// "layer is a, b", or "layer is not c" where those are more.
static void add_words(const struct config_key *cause, unsigned read, struct strbuf *text)
{
    unsigned n_read = 0;
    for (size_t i = 0; i < cause->n_words; ++i)
        n_read += read >> i & 1;
    const bool is_not = 2 * n_read > cause->n_words;
    const char *before = is_not ? " is not " : " is ";
    for (size_t i = 0; i < cause->n_words; ++i) {
        if ((read >> i & 1) == is_not)
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
        const int n_variants = i == (int)index ? 0 : count_variants(cause);
        unsigned read = 0;
        for (int variant = 0; variant < n_variants; ++variant)
            read |= (unsigned)is_read_with(arch, keys, index, i, variant, settings) << variant;
        if (cause->type == CONFIG_WORD) {
            if (read != 0 && read != (1U << n_variants) - 1) {
                add_name(keys, cause, text);
                add_words(cause, read, text);
            }
            continue;
        }
        const bool standard =
            n_variants && is_read_with(arch, keys, index, i, CONFIG_NONE, settings);
        if (!n_variants || standard == (read != 0))
            continue;
        add_name(keys, cause, text);
        if (cause->type == CONFIG_INT)
            attncl__strbuf_add(text, " is %s%s", standard ? "" : "not ", cause->otherwise);
        else
            attncl__strbuf_add(text, " is %s",
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
