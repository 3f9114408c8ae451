// SPDX-License-Identifier: MIT
// The library's only way to the environment; rows in env_list.def.
#ifndef ATTNCL_BASE_ENV_H
#define ATTNCL_BASE_ENV_H

#include <stdbool.h>

enum env_var {
#define ENV(id, name, meaning) ENV_##id,
#include "base/env_list.def"
#undef ENV
    N_ENV
};

// The value, or NULL when unset, empty, or when the process runs with raised privileges.  Borrowed.
const char *attncl__env(enum env_var var);

// Hands every variable "NAME=value" whose name begins with `prefix` to `fn`: variables of drivers,
// which the library does not read but must tell apart.
void attncl__env_each(const char *prefix, void (*fn)(const char *entry, void *user), void *user);

// True for a privileged process, in which the environment and the user's cache are not trusted.
bool attncl__privileged(void);

#endif
