// SPDX-License-Identifier: MIT
//
// The log: one callback for the process.

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

static attncl_log_fn log_fn;
static void *log_user;
static attncl_log_level log_level;

void attncl_log_set(attncl_log_fn fn, void *user, attncl_log_level level)
{
    log_fn = fn;
    log_user = user;
    log_level = level;
}

int attncl__log_is_wanted(attncl_log_level level)
{
    return log_fn && level <= log_level;
}

void attncl__log_text(attncl_log_level level, const char *text)
{
    if (attncl__log_is_wanted(level))
        log_fn(level, text, log_user);
}

void attncl__log(attncl_log_level level, const char *fmt, ...)
{
    if (!attncl__log_is_wanted(level))
        return;
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    log_fn(level, text, log_user);
}
