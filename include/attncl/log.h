// SPDX-License-Identifier: MIT
/**
 * @file attncl/log.h
 * Why the library chose what it chose: lines to a callback, never printed.
 *
 * At ATTNCL_LOG_DEBUG a line "building FILE" precedes each compilation, and a line "program " with a
 * JSON object follows it, or the load from the program cache: `file`, `macros`, `options`, `build_s`
 * (null: from the cache), `log` (of the driver's compiler) and `kernels`, each with `name` and the
 * sizes `work_group`, `local_bytes`, `private_bytes` and `spill_bytes`.  A size that the driver does
 * not tell is null; only Intel's drivers tell `spill_bytes`.  Lines of programs have any length.
 *
 * Threads: call it before other threads use the library.
 */
#ifndef ATTNCL_LOG_H
#define ATTNCL_LOG_H

#include "attncl/export.h"

ATTNCL_BEGIN

typedef enum attncl_log_level {
    ATTNCL_LOG_ERROR = 1, /**< something was lost or given up */
    ATTNCL_LOG_WARN = 2,  /**< worked around: a cache entry rejected, a variant not built */
    ATTNCL_LOG_INFO = 3,  /**< once per object: device chosen, GEMM chosen and why */
    ATTNCL_LOG_DEBUG = 4, /**< once per kernel: programs built, cache hits; what drivers build */
} attncl_log_level;

/** Receives one line without a line end.  `text` is borrowed for the call.  Must not call the
 * library. */
typedef void (*attncl_log_fn)(attncl_log_level level, const char *text, void *user);

/**
 * Sends messages up to `level` to `fn` (NULL: nowhere, the default).  Process-wide; call it before
 * other threads use the library.
 * Errors: none.
 */
ATTNCL_API void attncl_log_set(attncl_log_fn fn, void *user, attncl_log_level level);

ATTNCL_END

#endif
