// SPDX-License-Identifier: MIT
// Inputs and results of the iterations of a loop.  Host side: lib/op/recurrent/loop.c
//
//   Work      index: one work-item; copy, sum: a work-group moves `per_group` elements, work-item i vectors
//             i, i + LS ... of them
//   Memory    one row of x, one row of y; sum reads y too
//   Numerics  sums in the order of the iterations
//
//   Macro     Meaning                     Values
//   VW        floats in a vector          1 | 4 | 8 | 16
//   LS        work-group size             1 .. 256

#include "common/vector.clh"

// Iterations count up from 0 and restart after the last; `reversed`: y counts down.
KERNEL void loop_index_fwd(__global int *restrict next, __global int *restrict y, int trip_count,
                           int reversed)
{
    const int iteration = next[0];
    y[0] = reversed ? trip_count - 1 - iteration : iteration;
    next[0] = iteration + 1 < trip_count ? iteration + 1 : 0;
}

// x and y have rows x_stride and y_stride apart, 0 where there is one only; an iteration outside 0
// .. n_rows - 1 counts as the nearest.
KERNEL void loop_copy_fwd(__global const float *restrict x, __global const int *restrict iteration,
                          __global float *restrict y, long x_stride, long y_stride, long count,
                          int per_group, int n_rows)
{
    const long row = clamp(iteration[0], 0, n_rows - 1);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    __global const float *from = x + row * x_stride;
    __global float *to = y + row * y_stride;

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        store_some(load_some(from + i, n, 0.0f), to + i, n);
    }
}

// y is x in iteration `first`, and gets x added in the others.
KERNEL void loop_sum_fwd(__global const float *restrict x, __global const int *restrict iteration,
                         __global float *y, int first_iteration, long count, int per_group)
{
    const int adds = iteration[0] != first_iteration;
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        const FV v = load_some(x + i, n, 0.0f);
        store_some(adds ? load_some(y + i, n, 0.0f) + v : v, y + i, n);
    }
}
