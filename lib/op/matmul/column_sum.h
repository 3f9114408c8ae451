// SPDX-License-Identifier: MIT
// Sums over rows, without atomics: blocks of rows first, then their sums (cl/matmul/column_sum.cl).
// The order depends on the shape alone.
#ifndef ATTNCL_OP_MATMUL_COLUMN_SUM_H
#define ATTNCL_OP_MATMUL_COLUMN_SUM_H

#include "launch/launch.h"

// y[a, c] = sum_r x[a, r, c]: x [batch, rows, width] contiguous, y [batch, width].
struct column_sum {
    int64_t batch, rows, width;
};

size_t attncl__column_sum_scratch(const struct column_sum *s); // bytes
// `scratch` may be absent when no bytes were asked for.  y must not be in it.
attncl_status attncl__column_sum(struct launcher *l, const struct column_sum *s, struct span x,
                                 struct span y, struct span scratch);

#endif
