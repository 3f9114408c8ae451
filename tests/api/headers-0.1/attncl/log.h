// SPDX-License-Identifier: MIT
#ifndef ATTNCL_LOG_H
#define ATTNCL_LOG_H
#include "attncl/export.h"
ATTNCL_BEGIN
typedef enum attncl_log_level {
    ATTNCL_LOG_ERROR = 1,
    ATTNCL_LOG_WARN = 2,
    ATTNCL_LOG_INFO = 3,
    ATTNCL_LOG_DEBUG = 4,
} attncl_log_level;
typedef void (*attncl_log_fn)(attncl_log_level level, const char *text, void *user);
ATTNCL_API void attncl_log_set(attncl_log_fn fn, void *user, attncl_log_level level);
ATTNCL_END
#endif
