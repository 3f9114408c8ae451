// SPDX-License-Identifier: MIT
// What the rounds of a loop read and leave behind.  Host side: lib/op/loop.c
//
//   Work      round: one work-item; copy, sum: a group moves `per_group` elements, work-item i vectors
//             i, i + LS ... of them
//   Memory    one row of x, one row of y; sum reads y too
//   Numerics  sums in the order of the rounds
//
//   Macro     Meaning                     Values
//   VW        floats in a vector          1 | 4 | 8 | 16
//   LS        work-items in a group       1 .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

// Rounds count up from 0 and start anew after the last; `back`: y counts down.
KERNEL void loop_round_fwd(__global int *restrict next, __global int *restrict y, int n_rounds,
                           int back)
{
    const int round = next[0];
    y[0] = back ? n_rounds - 1 - round : round;
    next[0] = round + 1 < n_rounds ? round + 1 : 0;
}

// x and y have rows x_stride and y_stride apart, 0 where there is one only; a round outside 0 ..
// n_rows - 1 counts as the nearest.
KERNEL void loop_copy_fwd(__global const float *restrict x, __global const int *restrict round,
                          __global float *restrict y, long x_stride, long y_stride, long count,
                          int per_group, int n_rows)
{
    const long row = clamp(round[0], 0, n_rows - 1);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);
    __global const float *from = x + row * x_stride;
    __global float *to = y + row * y_stride;

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        store_some(load_some(from + i, n, 0.0f), to + i, n);
    }
}

// y is x in round `first`, and gets x added in the others.
KERNEL void loop_sum_fwd(__global const float *restrict x, __global const int *restrict round,
                         __global float *y, int first_round, long count, int per_group)
{
    const int adds = round[0] != first_round;
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, count);

    for (long i = first + VW * (long)get_local_id(0); i < end; i += VW * LS) {
        const int n = (int)min(end - i, (long)VW);
        const FV v = load_some(x + i, n, 0.0f);
        store_some(adds ? load_some(y + i, n, 0.0f) + v : v, y + i, n);
    }
}
