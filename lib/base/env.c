// SPDX-License-Identifier: MIT
//
// Environment variables: the only getenv.

#define _GNU_SOURCE // secure_getenv
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/env.h"

static const char *const names[N_ENV] = {
#define ENV(id, name, meaning) [ENV_##id] = name,
#include "base/env_list.def"
#undef ENV
};

const char *attncl__env(enum env_var var)
{
    const char *value = secure_getenv(names[var]);
    return value && *value ? value : NULL;
}

void attncl__env_each(const char *prefix, void (*fn)(const char *entry, void *user), void *user)
{
    const size_t n = strlen(prefix);

    for (char **entry = environ; entry && *entry; ++entry)
        if (strncmp(*entry, prefix, n) == 0)
            fn(*entry, user);
}

bool attncl__privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}
