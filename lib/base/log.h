// SPDX-License-Identifier: MIT
// Log messages for the application's callback.  The library itself never prints.
#ifndef ATTNCL_BASE_LOG_H
#define ATTNCL_BASE_LOG_H

#include "attncl/log.h"

// Formats the message and calls the callback, if it wants this level.  Cuts at 511 bytes.
void attncl__log(attncl_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Logs an unformatted text of any length.
void attncl__log_text(attncl_log_level level, const char *text);

// True when a message of this level would be delivered; for messages that are costly to format.
int attncl__log_is_wanted(attncl_log_level level);

#endif
