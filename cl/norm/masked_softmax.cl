// SPDX-License-Identifier: MIT
// softmax over the last axis of [B, Q, K]; columns from a row's length on have score -1e6.
// Host side: lib/op/norm/masked_softmax.c
//
//   Work      as softmax.cl
//   Memory    as softmax.cl, but reads only the visible columns
//   Numerics  as softmax.cl.  The masked score is finite, so length 0 gives 1/K in all columns.  All masked
//             columns of a row get the same value

#include "common/online_softmax.clh"

#define MASKED_SCORE -1e6f

// lens: one length per rows_per_length rows; 0: no lengths.  Other arguments as in softmax.cl.
KERNEL void masked_softmax_rows_fwd(__global const float *restrict x,
                                    __global const int *restrict lens, __global float *restrict y,
                                    long start, long stride, int width, long rows, int per_group,
                                    long rows_per_length)
{
    ROW_REDUCE_LOCALS(tmp, 2);

    FOR_ROWS (row, rows, per_group) {
        const int n = row < rows ? width : 0;
        const int length = n && rows_per_length ? clamp(lens[row / rows_per_length], 0, n) : n;
        struct softmax_row r = {.x = x + start + row * stride, .n = length};
        __global float *yr = y + row * width;

        softmax_row_reduce(&r, length < n ? MASKED_SCORE : -INFINITY, yr, tmp);
        const float masked = exp_nonpos_f(MASKED_SCORE - r.row_max);
        const float sum = r.sum + (length < n ? masked * (float)(n - length) : 0.0f);
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        softmax_row_write(&r, factor, masked * factor, yr, n);
    }
}
