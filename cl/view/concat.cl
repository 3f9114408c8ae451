// SPDX-License-Identifier: MIT
// Values one after another along the middle axis.  Host side: lib/op/view/concat.c
//
//   Work      a work-group takes `per_group` elements of one value's part of one row of y, work-item i
//             elements i, i + LS ...; 1-D grid: chunks fastest, then values, then rows
//   Memory    reads and writes each element once
//   Numerics  bits are copied, floats or ints alike

#include "common/types.clh"

#define TAKE(i, before)                                                                            \
    case i:                                                                                        \
        x = x##i;                                                                                  \
        begin = end##before;                                                                       \
        end = end##i;                                                                              \
        break

// y: rows of end7 elements; value i is elements end(i - 1) to end(i) of each.
KERNEL void
concat_fwd(__global uint *restrict y, int n_values, long n_chunks, int per_group,
           __global const uint *restrict x0, long end0, __global const uint *restrict x1, long end1,
           __global const uint *restrict x2, long end2, __global const uint *restrict x3, long end3,
           __global const uint *restrict x4, long end4, __global const uint *restrict x5, long end5,
           __global const uint *restrict x6, long end6, __global const uint *restrict x7, long end7)
{
    const long block = (long)get_group_id(0) / n_chunks;
    const long chunk = (long)get_group_id(0) - block * n_chunks;
    const long row = block / n_values;
    const int value = (int)(block - row * n_values);
    __global const uint *x = x0;
    long begin = 0, end = end0;

    switch (value) {
        TAKE(1, 0);
        TAKE(2, 1);
        TAKE(3, 2);
        TAKE(4, 3);
        TAKE(5, 4);
        TAKE(6, 5);
        TAKE(7, 6);
    default:
        break;
    }
    const long width = end - begin, first = chunk * per_group;
    const int count = (int)min((long)per_group, width - first);
    __global const uint *from = x + row * width + first;
    __global uint *to = y + row * end7 + begin + first;

    for (int i = (int)get_local_id(0); i < count; i += LS)
        to[i] = from[i];
}
