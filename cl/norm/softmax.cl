// SPDX-License-Identifier: MIT
// softmax over the last axis.  Host side: lib/op/norm/softmax.c
//
//   Work      LANES_PER_ROW work-items share a row, LS / LANES_PER_ROW rows a work-group; CPU variant: one work-item walks
//             `per_group` rows
//   Memory    reads x once and writes y once; reads rows that are not cached twice.  CPU variant: reads a row
//             of x twice and of y once, all but the first from cache
//   Numerics  subtracts the row maximum; a row of only -inf gives zeros; NaN and +inf make their row NaN

#include "common/online_softmax.clh"

// x: rows of `width`, `stride` apart; y: [rows, width]
KERNEL void softmax_rows_fwd(__global const float *restrict x, __global float *restrict y,
                             long start, long stride, int width, long rows, int per_group)
{
#if LS == 1
    // softmax_row_reduce() and softmax_row_write() expanded by hand: 3 to 15 % faster while rows lie in cache.
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        __global float *yr = y + row * width;
        int c;

        // Pass 1: the row maximum keeps exp() in range.
        const float largest = item_max(xr, width);
        const float row_max = largest == -INFINITY ? 0.0f : largest;

        // Pass 2: numerators and their sum.
        FV sum_v = (FV)(0.0f);
        for (c = 0; c + VW <= width; c += VW) {
            const FV e = exp_nonpos_v(VLOAD(xr + c) - row_max);
            VSTORE(e, yr + c);
            sum_v += e;
        }
        if (c < width) {
            const FV e = exp_nonpos_v(load_tail(xr, width, -INFINITY) - row_max);
            store_tail(e, yr, width);
            sum_v += e;
        }
        const float sum = horizontal_sum(sum_v);

        // Pass 3: the division.
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (c = 0; c + VW <= width; c += VW)
            VSTORE(VLOAD(yr + c) * factor, yr + c);
        if (c < width)
            store_tail(load_tail(yr, width, 0.0f) * factor, yr, width);
    }
#else
    ROW_REDUCE_LOCALS(tmp, 2);

    FOR_ROWS (row, rows, per_group) {
        struct softmax_row r = {.x = x + start + row * stride, .n = row < rows ? width : 0};
        __global float *yr = y + row * width;

        softmax_row_reduce(&r, -INFINITY, yr, tmp);
        softmax_row_write(&r, r.sum == 0.0f ? 0.0f : 1.0f / r.sum, 0.0f, yr, r.n);
    }
#endif
}
