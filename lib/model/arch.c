// SPDX-License-Identifier: MIT
//
// The table of architectures, and reading a configuration.

#include <string.h>

#include "attncl/describe.h"
#include "base/suggest.h"
#include "model/arch.h"

static const struct {
    const char *name;
    const struct arch_class *class;
} table[] = {
#define ARCH(file, name) {#name, &attncl__arch_##name},
#include "model/arch_list.def"
#undef ARCH
};
enum { N_ARCHS = sizeof table / sizeof table[0] };

const char *attncl_arch_name(size_t i)
{
    return i < N_ARCHS ? table[i].name : NULL;
}

attncl_status attncl__arch_find(const char *name, const struct arch_class **ret)
{
    struct suggestion s = {.word = name};
    for (size_t i = 0; i < N_ARCHS; ++i) {
        if (strcmp(table[i].name, name) == 0) {
            *ret = table[i].class;
            return ATTNCL_OK;
        }
        attncl__suggestion_add(&s, table[i].name);
    }
    return FAIL(ATTNCL_ERR_FORMAT, "arch %.100s is not known%s", name,
                attncl__suggestion_text(&s, "archs"));
}

// Unknown keys are refused first: a misspelled key is why another one is missing.
attncl_status attncl__arch_configure(const struct arch_class *arch, const struct json *object,
                                     void *settings)
{
    static const struct key none[] = {{0}};
    const struct key *keys = arch->keys ? arch->keys : none;
    TRY(attncl__config_check_keys(keys, object, NULL));
    return attncl__config_read(keys, object, settings);
}
