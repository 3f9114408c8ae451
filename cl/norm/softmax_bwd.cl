// SPDX-License-Identifier: MIT
// The gradient of softmax over the last axis.  Host side: lib/op/norm/masked_softmax.c
//
//   Work      LANES_PER_ROW work-items share a row, LS / LANES_PER_ROW rows a work-group; CPU variant: one work-item walks
//             `per_group` rows
//   Memory    reads y and dy once and writes dx once; reads rows that are not cached twice, in the CPU variant
//             the second time from cache
//   Numerics  the sum over the row comes first: rows of y sum to 1, so |dy - sum| is at most twice the largest |dy|

#include "common/row_tiling.clh"

// y, dy, dx: [rows, width]; lens: one length per rows_per_length rows, from which on dx is 0; 0: no lengths
KERNEL void softmax_bwd_rows(__global const float *restrict y, __global const float *restrict dy,
                             __global const int *restrict lens, __global float *restrict dx,
                             int width, long rows, int per_group, long rows_per_length)
{
    ROW_REDUCE_LOCALS(tmp, 1);

    FOR_ROWS (row, rows, per_group) {
        const int n = row < rows ? width : 0;
        const int length = n && rows_per_length ? clamp(lens[row / rows_per_length], 0, n) : n;
        __global const float *yr = y + row * width, *dyr = dy + row * width;
        ROW_CACHE_ARRAY(y_v);
        ROW_CACHE_ARRAY(dy_v);

        FV sum_v = (FV)(0.0f);
        FOR_ROW_VECS (k, c, n)
            sum_v += ROW_CACHE(y_v, k, row_vec_load(yr, c, n, 0.0f)) *
                     ROW_CACHE(dy_v, k, row_vec_load(dyr, c, n, 0.0f));
        const float sum = row_reduce_sum(horizontal_sum(sum_v), ROW_REDUCE_SLOT(tmp, 0));

        FOR_ROW_VECS (k, c, n) {
            const FV g = ROW_CACHED(dy_v, k, row_vec_load(dyr, c, n, 0.0f)) - sum;
            const FV d = ROW_CACHED(y_v, k, row_vec_load(yr, c, n, 0.0f)) * g;
            row_vec_store(LANES < (IV)(length - c) ? d : (FV)(0.0f), dx + row * width, c, n);
        }
    }
}
