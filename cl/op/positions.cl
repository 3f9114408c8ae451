// SPDX-License-Identifier: MIT
// Adds rows of a table of positions.  Host side: lib/op/positions.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x and the table, writes y
//   Numerics  one rounding
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

static inline void add_row(__global const float *restrict x, __global const float *restrict p,
                           __global float *restrict y, int width)
{
    int c = VW * (int)get_local_id(0);

    for (; c + VW <= width; c += VW * LS)
        VSTORE(VLOAD(x + c) + VLOAD(p + c), y + c);
    if (c < width)
        store_part(load_part(x + c, width - c, 0.0f) + load_part(p + c, width - c, 0.0f), y + c,
                   width - c);
}

// Row r of x has position r / inner % length; rows of x are `stride` apart.
KERNEL void positions_rows_fwd(__global const float *restrict x,
                               __global const float *restrict table, __global float *restrict y,
                               long start, long stride, int width, long rows, int per_group,
                               long inner, long length)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);

    for (long row = first; row < end; ++row)
        add_row(x + start + row * stride, table + row / inner % length * width, y + row * width,
                width);
}

// All rows have the position in position[0]; one outside the table counts as its nearest row.
KERNEL void positions_at_fwd(__global const float *restrict x, __global const float *restrict table,
                             __global const int *restrict position, __global float *restrict y,
                             long start, long stride, int width, long rows, int per_group,
                             int n_positions)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const long at = clamp(position[0], 0, n_positions - 1);

    for (long row = first; row < end; ++row)
        add_row(x + start + row * stride, table + at * width, y + row * width, width);
}
