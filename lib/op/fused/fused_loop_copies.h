// SPDX-License-Identifier: MIT
// fused_loop_copies_fwd, for the compiler of graphs: inputs, and what its parts are.
#ifndef ATTNCL_OP_FUSED_LOOP_COPIES_H
#define ATTNCL_OP_FUSED_LOOP_COPIES_H

#include <stdint.h>

// Input LOOP_COPIES_X + i and output i are the x and y of part i.
enum { LOOP_COPIES_MAX = 8 };
enum {
    LOOP_COPIES_ITERATION,
    LOOP_COPIES_X,
    N_LOOP_COPIES_INPUTS = LOOP_COPIES_X + LOOP_COPIES_MAX
};

// A part is a loop_row, loop_stack or loop_sum: two bits of `kinds` each, the first part's the lowest.
enum { LOOP_COPY_ROW, LOOP_COPY_STACK, LOOP_COPY_SUM, LOOP_COPY_BITS = 2 };

static inline int attncl__loop_copy_kind(int32_t kinds, int part)
{
    return kinds >> LOOP_COPY_BITS * part & ((1 << LOOP_COPY_BITS) - 1);
}

#endif
