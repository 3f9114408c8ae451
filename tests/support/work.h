// SPDX-License-Identifier: MIT
// Pieces of work for the tests of faults: each opens what it needs, computes, and closes everything,
// whatever fails on the way.
#ifndef ATTNCL_TEST_WORK_H
#define ATTNCL_TEST_WORK_H

#include "base/strbuf.h"
#include "support/golden.h"

// Appends the results' bytes to `result`.  Returns the first failure.
typedef attncl_status work_fn(const char *what, struct strbuf *result);

work_fn work_model;   // a run of a model file
work_fn work_decoder; // tokens one by one, with and without a wait
work_fn work_slots;   // a slot takes tokens, another one its beginning, then both
work_fn work_trainer; // of these keys: steps, evaluation, a checkpoint, and going on from it
work_fn work_bound;   // a graph in buffers of the caller, at this offset
work_fn work_events;  // reads of outputs as they are completed, lists of events
work_fn work_profile; // a profiled run, in a context of its own
work_fn work_adopted; // a context inside that of the caller
work_fn work_cold;    // the same that writes it
work_fn work_cache;   // a context of its own that reads the program cache

// Parts of them, in any context and thread; small: y = (x + x) x.
attncl_status run_golden(attncl_context *ctx, const struct golden *g, struct strbuf *result);
attncl_status decode_golden(attncl_context *ctx, const struct golden *g, struct strbuf *result);
attncl_status run_small(attncl_context *ctx, bool profiled, struct strbuf *result);

// Before and after all work: a directory with the files that it needs.
void work_begin(void);
void work_end(void);

#endif
