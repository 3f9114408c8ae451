// SPDX-License-Identifier: MIT
// Inputs and results of the iterations of a loop.  Host side: lib/op/recurrent/loop.c
//
//   Work      index: one work-item; copies: a work-group moves `per_group` elements of the part that is its second index,
//             nothing beyond the part's count, work-item i vectors i, i + LS ... of them
//   Memory    one row of x, one row of y; sums read y too
//   Numerics  sums in the order of the iterations

#include "common/vector.clh"

// Iterations count up from 0 and restart after the last; `reversed`: y counts down.
KERNEL void loop_index_fwd(__global int *restrict next, __global int *restrict y, int trip_count,
                           int reversed)
{
    const int iteration = next[0];
    y[0] = reversed ? trip_count - 1 - iteration : iteration;
    next[0] = iteration + 1 < trip_count ? iteration + 1 : 0;
}

// Parts: one row of x becomes y, x becomes one row of y, or y is x in iteration `first` and gets x added in the others.  An
// iteration outside 0 .. n_rows - 1 counts as the nearest.
enum { COPY_ROW, COPY_STACK, COPY_SUM };

#define PART_PARAMS(i) , __global const float *x_##i, __global float *y_##i, long count_##i
#define TAKE_PART(i)                                                                               \
    case i:                                                                                        \
        x = x_##i, y = y_##i, count = count_##i;                                                   \
        break;

// kinds: two bits for each part, the first part's the lowest
KERNEL void loop_copies_fwd(__global const int *restrict iteration, int n_rows, int first_iteration,
                            int kinds,
                            int per_group PART_PARAMS(0) PART_PARAMS(1) PART_PARAMS(2)
                                PART_PARAMS(3) PART_PARAMS(4) PART_PARAMS(5) PART_PARAMS(6)
                                    PART_PARAMS(7))
{
    const int part = (int)get_group_id(1), kind = kinds >> 2 * part & 3;
    __global const float *x = x_0;
    __global float *y = y_0;
    long count = count_0;

    switch (part) {
        TAKE_PART(1)
        TAKE_PART(2)
        TAKE_PART(3)
        TAKE_PART(4)
        TAKE_PART(5)
        TAKE_PART(6)
        TAKE_PART(7)
    }
    const long row = clamp(iteration[0], 0, n_rows - 1);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    const int adds = kind == COPY_SUM && iteration[0] != first_iteration;

    x += kind == COPY_ROW ? row * count : 0;
    y += kind == COPY_STACK ? row * count : 0;
    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        const FV v = load_some(x + i, n, 0.0f);
        store_some(adds ? load_some(y + i, n, 0.0f) + v : v, y + i, n);
    }
}
