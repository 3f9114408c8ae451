// SPDX-License-Identifier: MIT
// Environment variables.  The list is env_list.def; nothing else reads the environment.
#ifndef ATTNCL_BASE_ENV_H
#define ATTNCL_BASE_ENV_H

#include <stdbool.h>

#include "attncl/status.h"

enum env_var {
#define ENV(id, name, values, meaning) ENV_##id,
#include "base/env_list.def"
#undef ENV
    N_ENV
};

// Returns the value, borrowed; NULL when it is unset or empty, or when the process is privileged.
const char *attncl__env_get(enum env_var var);

// ERR_ARGUMENT when a variable has a value that it does not allow, or an unknown variable's name looks
// like a misspelt one.
attncl_status attncl__env_check(void);

// Iterates over the entries "NAME=value" that begin with `prefix`, in sorted order: NULL gives the first, otherwise the
// one after `entry`; returns NULL after the last.  Drivers' variables are part of the program cache's key.
const char *attncl__env_next(const char *prefix, const char *entry);

// A privileged (setuid) process must not trust the environment or the user's files.
bool attncl__is_privileged(void);

#endif
