// SPDX-License-Identifier: MIT
//
// Environment variables as a context reads them: none where its options say so.

#include "device/internal.h"

const char *attncl__context_env(const attncl_context *ctx, enum env_var var)
{
    return ctx->ignore_environment ? NULL : attncl__env(var);
}

attncl_status attncl_environment_check(void)
{
    return attncl__env_check();
}
