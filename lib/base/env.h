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

// The value, borrowed.  NULL when it is unset or empty, or the process is privileged.
const char *attncl__env(enum env_var var);

// ERR_ARGUMENT for a variable whose value is none of its words or no directory, and for one whose
// name is nearly that of a variable.
attncl_status attncl__env_check(void);

// The entries "NAME=value" of all variables whose name begins with `prefix`, in the order of their texts: the first for
// NULL, else the one after `entry`.  NULL after the last.  For drivers' variables, which are part of the program cache's key.
const char *attncl__env_next(const char *prefix, const char *entry);

// True for a privileged (setuid) process, which must not trust the environment or the user's files.
bool attncl__privileged(void);

#endif
