// SPDX-License-Identifier: MIT
// Inputs and results of the iterations of a loop.  Host side: lib/op/recurrent/loop.c
//
//   Work      index: one work-item; copies: a work-group moves `per_group` elements of a part, work-item i vectors i,
//             i + LS ... of them
//   Memory    reads one row of x, writes one row of y; sums read y too
//   Numerics  sums in the order of the iterations

#include "common/parts.clh"
#include "common/vector.clh"

// Iterations count up from 0 and restart after the last; if `reversed`, y counts down.
KERNEL void loop_index_fwd(__global int *restrict next, __global int *restrict y, int trip_count,
                           int reversed)
{
    const int iteration = next[0];
    y[0] = reversed ? trip_count - 1 - iteration : iteration;
    next[0] = iteration + 1 < trip_count ? iteration + 1 : 0;
}

// A part copies one of x's `bound` rows to y, or x to one of y's `bound` rows; the iteration is clamped to the rows.  Or
// it adds x to y, which iteration `bound` overwrites.
enum { COPY_ROW, COPY_STACK, COPY_SUM };

#define COPY_PARAMS(i)                                                                             \
    , __global const float *x_##i, __global float *y_##i, int kind_##i, int bound_##i PART_PARAMS(i)
#define TAKE(i) IF_IN_PART(i) x = x_##i, y = y_##i, kind = kind_##i, bound = bound_##i;

KERNEL void loop_copies_fwd(__global const int *restrict iteration PARTS(COPY_PARAMS))
{
    __global const float *x;
    __global float *y;
    int kind, bound;
    struct part part;

    PARTS(TAKE)
    const int n = part_count(&part), adds = kind == COPY_SUM && iteration[0] != bound;
    const long row = kind == COPY_SUM ? 0 : clamp(iteration[0], 0, bound - 1);

    x += part_first(&part) + (kind == COPY_ROW ? row * part.count : 0);
    y += part_first(&part) + (kind == COPY_STACK ? row * part.count : 0);
    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const FV v = load_some(x + c, n - c, 0.0f);
        store_some(adds ? load_some(y + c, n - c, 0.0f) + v : v, y + c, n - c);
    }
}
