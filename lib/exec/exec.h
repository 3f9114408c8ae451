// SPDX-License-Identifier: MIT
// Internal functions for running compiled graphs.
#ifndef ATTNCL_EXEC_EXEC_H
#define ATTNCL_EXEC_EXEC_H

#include "compile/program.h"

// attncl_graph_write() without its wait: `data` must stay unchanged until the queue has been waited for.
attncl_status attncl__graph_write_queued(attncl_graph *g, const char *name, const void *data,
                                         size_t bytes);

// attncl_graph_reset() that leaves the state as it is.
attncl_status attncl__graph_restart(attncl_graph *g);

// Copies rows [first, first + n) of batch entry `from` to batch entry `to`, for each state [T, B, K] of a compiled
// graph. `target` may be the same graph; its states may differ in B only.  Does not wait.
attncl_status attncl__graph_copy_rows(attncl_graph *source, int64_t from, attncl_graph *target,
                                      int64_t to, int64_t first, int64_t n);

// True when attncl__graph_write_queued() blocks on this device, until earlier commands are complete.
bool attncl__queued_writes_block(const attncl_context *ctx);

// Returns the context's GEMM precision: "float32", "tf32" or "bf16".
const char *attncl__precision_name(const attncl_context *ctx);

// An output that a run copies to the host once the node that completes it is done, while later nodes
// run.
struct early_read {
    const char *name;
    void *data; // `bytes` bytes, in use until attncl__early_reads_end()
    size_t bytes;
    cl_event done; // starts as NULL
};

// Sorts reads by the order in which their outputs become complete.
attncl_status attncl__early_reads_sort(const attncl_graph *g, struct early_read *reads, size_t n);
// attncl_graph_run() with sorted reads; returns when everything is enqueued.  On success
// attncl__early_reads_end() must follow; after a failure no read is in flight.
attncl_status attncl__graph_run_reading(attncl_graph *g, struct early_read *reads, size_t n);
attncl_status attncl__early_read_is_done(const struct early_read *read, bool *ret);
// Waits for the run and checks canaries as attncl_graph_run() does.
attncl_status attncl__early_reads_end(attncl_graph *g, struct early_read *reads, size_t n);
// Waits for the reads after another failure, and keeps its error message.
void attncl__early_reads_abandon(attncl_graph *g, struct early_read *reads, size_t n);

// Waits for the runs of a compiled graph.
attncl_status attncl__graph_wait(attncl_graph *g);
// Waits for everything enqueued, ignoring failures; keeps the error message of an earlier one.
void attncl__graph_drain(attncl_graph *g);

// Enqueues a read after a run, without waiting; attncl__read_wait() waits for it.
attncl_status attncl__read_enqueue(attncl_graph *g, struct early_read *read);
attncl_status attncl__read_wait(attncl_graph *g, struct early_read *read);

// With ATTNCL_GUARD: the first fills everything that a run will write with poison; the second checks the
// canaries around every value and names the first op whose neighbour was overwritten.
attncl_status attncl__poison_program(struct program *p);
attncl_status attncl__graph_check_canaries(attncl_graph *g);

// True when an input or output is bound to a caller's buffer.
bool attncl__has_bound_buffers(const struct program *p);

// -- failed runs; the first two for model/, the others inside exec/

// ERR_STATE when a failed run has left state undefined.
attncl_status attncl__graph_check_state_defined(attncl_graph *g);
// Marks the graph's last run as failed and returns `status`.
attncl_status attncl__graph_mark_run_failed(attncl_graph *g, attncl_status status);

// Before a run: ERR_STATE when a failed one has left state undefined.
attncl_status attncl__run_begin(struct program *p);
// After enqueueing a run: records the result and returns `status`.
attncl_status attncl__run_end(struct program *p, attncl_status status);
// Marks a run as failed that was already enqueued.
void attncl__run_mark_failed(struct program *p);
// After a wait for the runs: records whether they are complete and returns `status`.
attncl_status attncl__run_note_wait(struct program *p, attncl_status status);
// ERR_STATE after a failed run, until attncl_graph_reset().
attncl_status attncl__check_state_defined(struct program *p);
// ERR_STATE after a failed run, until the next run.
attncl_status attncl__check_outputs_defined(struct program *p);

// -- look-ups by graph and name

// ERR_ARGUMENT for NULL, ERR_STATE for a graph that is not compiled.
attncl_status attncl__get_program(const attncl_graph *g, struct program **ret);
// As attncl__get_program(), and fails when the context can no longer run.
attncl_status attncl__get_runnable_program(const attncl_graph *g, struct program **ret);
// Returns NULL if there is no such input or output.
struct io_binding *attncl__find_binding(const struct io_list *io, const char *name);
// Finds an output of `bytes` bytes that is not bound to a caller's buffer.
attncl_status attncl__find_readable_output(const struct program *p, const char *name, size_t bytes,
                                           struct io_binding **ret);

#endif
