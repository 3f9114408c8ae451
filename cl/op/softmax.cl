// SPDX-License-Identifier: MIT
// softmax over the last axis.  Host side: lib/op/softmax.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x twice and y once more, a row at a time: the second and third come from cache
//   Numerics  subtracts the row maximum; a row of -inf only gives zeros; NaN and +inf make their
//             row NaN
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/math.clh"
#include "common/rows.clh"

// x: rows of `width`, `stride` apart; y: [rows, width]
KERNEL void softmax_rows_fwd(__global const float *restrict x, __global float *restrict y,
                             long start, long stride, int width, long rows, int per_group)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        __global float *yr = y + row * width;
        int c;

        // Pass 1: the row maximum keeps exp() in range.
        const float largest = ROW_MAX(xr, width, tmp);
        const float top = largest == -INFINITY ? 0.0f : largest;

        // Pass 2: numerators and their sum.
        FV sum_v = (FV)(0.0f);
        for (c = from; c + VW <= width; c += VW * LS) {
            const FV e = exp_nonpos_v(VLOAD(xr + c) - top);
            VSTORE(e, yr + c);
            sum_v += e;
        }
        if (c < width) {
            const FV e = exp_nonpos_v(load_tail(xr, width, -INFINITY) - top);
            store_tail(e, yr, width);
            sum_v += e;
        }
        const float sum = GROUP_SUM(sum_lanes(sum_v), tmp);

        // Pass 3: each work-item divides what it wrote itself.
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (c = from; c + VW <= width; c += VW * LS)
            VSTORE(VLOAD(yr + c) * factor, yr + c);
        if (c < width)
            store_tail(load_tail(yr, width, 0.0f) * factor, yr, width);
    }
}
