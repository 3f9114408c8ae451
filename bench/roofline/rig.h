// SPDX-License-Identifier: MIT
// What the cases of suite `device` share: their kernel, two buffers, and a pattern that shows
// whether every element arrived.  A rig is the state of its case_data.
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include "device/context.h"
#include "harness/case.h"

enum { RIG_FROM, RIG_TO, N_RIG_BUFFERS };

struct rig {
    cl_program program;
    cl_kernel kernel;
    size_t global, local; // work-items
    cl_mem buffer[N_RIG_BUFFERS];
    float *host;     // of transfers
    size_t n;        // floats
    size_t n_missed; // elements that the last read found wrong
};

// An empty rig as t->state; rig_close() releases it with all it holds.
attncl_status rig_open(struct case_data *t, struct rig **ret);
void rig_close(struct case_data *t);
// Builds roofline.cl with these macros and takes one kernel of it.
attncl_status rig_kernel(struct case_data *t, const char *name, int vw, int per);
// A buffer of r->n floats that holds the pattern, or -1 everywhere.
attncl_status rig_buffer(struct case_data *t, int which, bool pattern);
attncl_status rig_enqueue(struct case_data *t);

// Element i of the pattern: exact in float.
static inline float rig_pattern(size_t i)
{
    return (float)((uint32_t)i * 2654435761u >> 8);
}
void rig_fill(float *x, size_t first, size_t n);

// Counts in n_missed what differs from the pattern: in buffer RIG_TO, for family.read.
attncl_status rig_read_pattern(struct case_data *t);
// family.check: nothing may differ.
void rig_check(const struct case_data *t, struct check *c);
// family.settle: waits by reading one element of RIG_TO.
attncl_status rig_settle(struct case_data *t);

#endif
