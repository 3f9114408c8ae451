// SPDX-License-Identifier: MIT
//
// The environment, one table.

#define _GNU_SOURCE // secure_getenv
#include <stdlib.h>
#include <sys/auxv.h>

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

bool attncl__privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}
