// SPDX-License-Identifier: MIT
/**
 * @file attncl/profile.h
 * Where a graph's time goes: a row per node, and a Chrome trace.  Needs a context created with
 * `profile = 1`.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_PROFILE_H
#define ATTNCL_PROFILE_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/** One node's share of the profiled runs.  Filled by the library: fields are added at its end. */
typedef struct attncl_profile_row {
    size_t struct_size; /**< of this library's struct */
    const char *op;     /**< op class, "linear"; borrowed from the graph */
    const char *scope;  /**< where it was built, "encoder.layers.0"; borrowed */
    size_t n_commands;  /**< kernel launches and copies per run */
    size_t runs;        /**< runs counted */
    uint64_t total_ns;  /**< device time over these runs */
    uint64_t min_ns;    /**< fastest run */
    double flop;        /**< floating-point operations of one run, by the op's formula; 0 unknown */
    double bytes;       /**< least bytes moved by one run */
} attncl_profile_row;

/** Runs the graph once and waits, adding its times to the profile.  ERR_STATE without `profile =
 * 1`.
 * Errors: as attncl_graph_run(). */
ATTNCL_API attncl_status attncl_graph_run_profiled(attncl_graph *g);

/** Rows in node order; NULL beyond the last.  Borrowed until the next profiled run.
 * Errors: none. */
ATTNCL_API const attncl_profile_row *attncl_graph_profile_row(const attncl_graph *g, size_t i);

/**
 * Writes the profiled runs as a Chrome trace (chrome://tracing, Perfetto), replacing the file in
 * one step.  ERR_IO when it cannot be written; then no file is left behind.
 * Errors: ERR_IO, ERR_STATE without a profiled run.
 */
ATTNCL_API attncl_status attncl_graph_write_trace(const attncl_graph *g, const char *path);

ATTNCL_END

#endif
