// SPDX-License-Identifier: MIT
// What the rounds of a loop read and leave behind.  Host side: lib/op/loop.c
//
//   Work      round: one work-item; copy: a group moves `per_group` elements, work-item i vectors
//             i, i + LS ... of them
//   Memory    one row of x, one row of y
//   Numerics  none
//
//   Macro     Meaning                     Values
//   VW        floats in a vector          1 | 4 | 8 | 16
//   LS        work-items in a group       1 .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

// Rounds count up from 0 and start anew after the last.
KERNEL void loop_round_fwd(__global int *restrict next, __global int *restrict y, int n_rounds)
{
    const int round = next[0];
    y[0] = round;
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
