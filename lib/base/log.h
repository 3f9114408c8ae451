// SPDX-License-Identifier: MIT
// Messages that say why something was chosen.  The library never prints by itself.
#ifndef ATTNCL_BASE_LOG_H
#define ATTNCL_BASE_LOG_H

#include "attncl/log.h"

// Formats and hands the line to the callback when `level` is wanted.
void attncl__log(attncl_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// True when a message of this level would be delivered: for messages that are dear to build.
int attncl__log_wanted(attncl_log_level level);

#endif
