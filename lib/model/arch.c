// SPDX-License-Identifier: MIT
//
// The table of architectures.

#include <string.h>

#include "base/try.h"
#include "model/arch.h"

static const struct arch_class *const table[] = {
#define ARCH(file, name) &attncl__arch_##name,
#include "model/arch_list.def"
#undef ARCH
};

attncl_status attncl__arch_find(const char *name, const struct arch_class **ret)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
        if (strcmp(table[i]->name, name) == 0) {
            *ret = table[i];
            return ATTNCL_OK;
        }
    }
    return FAIL(ATTNCL_ERR_FORMAT, "arch %.100s is not known", name);
}
