// SPDX-License-Identifier: MIT
// softmax over the last axis.  Host side: lib/op/softmax.c
//
//   Work      ITEMS work-items share a row, LS / ITEMS rows a group; CPU form: one work-item walks
//             `per_group` rows
//   Memory    reads x once and writes y once; rows that are not held are read twice.  CPU form:
//             reads x twice and y once more, a row at a time: the second and third come from cache
//   Numerics  subtracts the row maximum; a row of -inf only gives zeros; NaN and +inf make their
//             row NaN
//
//   Macro     Meaning                                              Values
//   VW        floats in a vector                                   1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two                1 .. 256
//   ITEMS     work-items that share a row, a power of two          1 where LS is 1 | 4 .. LS
//   HELD      vectors of a row that each of them keeps; 0: none    0 .. 32

#include "common/exp_rows.clh"

// x: rows of `width`, `stride` apart; y: [rows, width]
KERNEL void softmax_rows_fwd(__global const float *restrict x, __global float *restrict y,
                             long start, long stride, int width, long rows, int per_group)
{
    SHARE_SPACE(tmp, 2);

    FOR_ROWS(row, rows, per_group) {
        struct exp_row r = {.x = x + start + row * stride, .n = row < rows ? width : 0};
        __global float *yr = y + row * width;

        exp_row_sum(&r, -INFINITY, yr, tmp);
        exp_row_write(&r, r.sum == 0.0f ? 0.0f : 1.0f / r.sum, 0.0f, yr, r.n);
    }
}
