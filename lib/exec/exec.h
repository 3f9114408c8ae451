// SPDX-License-Identifier: MIT
// Running compiled graphs, beyond the public functions.
#ifndef ATTNCL_EXEC_EXEC_H
#define ATTNCL_EXEC_EXEC_H

#include "compile/program.h"

// attncl_graph_write() without its wait: `data` must stay as it is until the queue has been waited
// for.
attncl_status attncl__graph_write_queued(attncl_graph *g, const char *name, const void *data,
                                         size_t bytes);

// n rows, from row `first` on, of entry `from` of each state [T, B, K] of one compiled graph become those of entry `to` of
// another one, whose states are the same but for B, or of itself.  Does not wait.
attncl_status attncl__graph_copy_rows(attncl_graph *source, int64_t from, attncl_graph *target,
                                      int64_t to, int64_t first, int64_t n);

// Whether it waits all the same, for what was enqueued before it.
bool attncl__queued_writes_wait(const attncl_context *ctx);

// Of the context's graphs, as a word: float32, tf32 or bf16.
const char *attncl__precision_name(const attncl_context *ctx);

// An output that a run copies to the host as soon as the node that completes it is done, while later
// nodes run.
struct early_read {
    const char *name;
    void *data; // [bytes], left alone until attncl__early_reads_end()
    size_t bytes;
    cl_event done; // NULL at first
};

// Sorts reads by the time at which their outputs are complete.
attncl_status attncl__early_reads_sort(const attncl_graph *g, struct early_read *reads, size_t n);
// attncl_graph_run() with reads, which are sorted: returns when all is enqueued.  On failure no read is
// under way; else attncl__early_reads_end() must follow.
attncl_status attncl__graph_run_reading(attncl_graph *g, struct early_read *reads, size_t n);
attncl_status attncl__early_read_is_done(const struct early_read *read, bool *ret);
// Waits for the run, and checks canaries as attncl_graph_run() does.
attncl_status attncl__early_reads_end(attncl_graph *g, struct early_read *reads, size_t n);
// The same after a failure, whose message stays.
void attncl__early_reads_abandon(attncl_graph *g, struct early_read *reads, size_t n);

// Waits for the runs of a compiled graph.
attncl_status attncl__graph_wait(attncl_graph *g);
// Waits for all that was enqueued, whatever comes of it; the message of a failure before stays.
void attncl__graph_drain(attncl_graph *g);

// A read behind a run, without a wait; then the wait for it, after which it is not under way.
attncl_status attncl__read_enqueue(attncl_graph *g, struct early_read *read);
attncl_status attncl__read_wait(attncl_graph *g, struct early_read *read);

// With ATTNCL_GUARD: fills everything that a run will write with poison; checks the canaries around
// every value, and names the first op whose neighbour was overwritten.
attncl_status attncl__program_poison(struct program *p);
attncl_status attncl__graph_check_canaries(attncl_graph *g);

// Whether an input or output is bound to a caller's buffer.
bool attncl__has_bound(const struct program *p);

// The same for files above: the state is defined; a run counts as failed, for `status`, which is passed on.
attncl_status attncl__graph_state_defined(attncl_graph *g);
attncl_status attncl__graph_run_failed(attncl_graph *g, attncl_status status);

// Around a run: refuses when a failed one has left state undefined; passes `status` on and notes a
// failure.
attncl_status attncl__run_begin(struct program *p);
attncl_status attncl__run_end(struct program *p, attncl_status status);
// A run has failed after it was enqueued.
void attncl__run_failed(struct program *p);
// After a wait for the runs: passes `status` on, and notes whether they are complete.
attncl_status attncl__run_waited(struct program *p, attncl_status status);
// ERR_STATE after a failed run: until attncl_graph_reset(); or until the next run.
attncl_status attncl__state_defined(struct program *p);
attncl_status attncl__outputs_defined(struct program *p);

// The program of a graph; ERR_ARGUMENT for NULL, ERR_STATE for one that is not compiled.
attncl_status attncl__program_of(const attncl_graph *g, struct program **ret);
// The same when its context can still run it.
attncl_status attncl__program_ready(const attncl_graph *g, struct program **ret);
// The one called `name`; NULL: there is none.
struct io_binding *attncl__find_binding(const struct io_list *io, const char *name);
// An output that is the graph's own and has so many bytes.
attncl_status attncl__program_readable(const struct program *p, const char *name, size_t bytes,
                                       struct io_binding **ret);

#endif
