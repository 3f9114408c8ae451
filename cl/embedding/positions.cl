// SPDX-License-Identifier: MIT
// Adds rows of a table of positions.  Host side: lib/op/embedding/positions.c
//
//   Work      LANES_PER_ROW work-items share a row; CPU variant: one walks `per_group` rows
//   Memory    reads x and the table, writes y
//   Numerics  one rounding

#include "common/row_tiling.clh"

static inline void add_row(__global const float *restrict x, __global const float *restrict p,
                           __global float *restrict y, int width)
{
    MAP_ROW_VECS(c, n, width,
                 row_vec_store(row_vec_load(x, c, n, 0.0f) + row_vec_load(p, c, n, 0.0f), y, c, n));
}

// Row r of x has position r / inner % length, or where has_position that in position[r position_stride], the nearest row of
// `length` where it is outside the table; rows of x are `stride` apart.
KERNEL void positions_rows_fwd(__global const float *restrict x,
                               __global const float *restrict table,
                               __global const int *restrict position, __global float *restrict y,
                               long start, long stride, int width, long rows, int per_group,
                               int has_position, int position_stride, long inner, long length)
{
    FOR_ROWS (row, rows, per_group) {
        const long p = min(row, rows - 1) * position_stride;
        const long at =
            has_position ? clamp((long)position[p], 0l, length - 1) : row / inner % length;
        add_row(x + start + row * stride, table + at * width, y + row * width,
                row < rows ? width : 0);
    }
}
