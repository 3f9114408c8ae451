// SPDX-License-Identifier: MIT
// Four of the five error macros; TRY_CL is in device/clerr.h. docs/dev/errors.md explains them.  Add no others.
#ifndef ATTNCL_BASE_TRY_H
#define ATTNCL_BASE_TRY_H

#include "attncl/status.h"

// Records the message and its place as this thread's last error and returns `status`.
attncl_status attncl__fail(attncl_status status, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

// If `status` is a failure, puts "prefix: " before this thread's last message, to say where it happened.
// Returns `status`.
attncl_status attncl__prefix_failure(attncl_status status, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#define FAIL(status, ...) attncl__fail((status), __FILE__, __LINE__, __VA_ARGS__)

// Returns a failure for a caller's mistake.
#define REQUIRE(cond, status, ...)                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return FAIL((status), __VA_ARGS__);                                                    \
    } while (0)

// Returns the call's failure, with its message.
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const attncl_status try_ = (call);                                                         \
        if (try_ != ATTNCL_OK)                                                                     \
            return try_;                                                                           \
    } while (0)

// As TRY, when something must be released first; needs a variable `status` and a label `done`.
#define TRY_DONE(call)                                                                             \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != ATTNCL_OK)                                                                   \
            goto done;                                                                             \
    } while (0)

#endif
