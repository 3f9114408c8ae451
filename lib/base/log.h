// SPDX-License-Identifier: MIT
// Log messages, to the application's callback.  The library itself never prints.
#ifndef ATTNCL_BASE_LOG_H
#define ATTNCL_BASE_LOG_H

#include "attncl/log.h"

// Formats the message and calls the callback, if it wants this level.
void attncl__log(attncl_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// The same for a text of any length, which is not formatted; attncl__log() cuts at 511 bytes.
void attncl__log_text(attncl_log_level level, const char *text);

// True when a message of this level would be delivered: for messages that are costly to format.
int attncl__log_wanted(attncl_log_level level);

#endif
