// SPDX-License-Identifier: MIT
// The gradient of softmax over the last axis.  Host side: lib/op/softmax_bwd.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads y and dy twice, the second time from cache, and writes dx once
//   Numerics  the sum over the row comes first: rows of y sum to 1, so that dy - sum is no larger
//             than twice the largest |dy|
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/rows.clh"

// y, dy, dx: [rows, width]; lens: absent (rows_per_length 0), or one for each `rows_per_length`
// rows: dx is 0 from there on
KERNEL void softmax_bwd_rows(__global const float *restrict y, __global const float *restrict dy,
                             __global const int *restrict lens, __global float *restrict dx,
                             int width, long rows, int per_group, long rows_per_length)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        __global const float *yr = y + row * width;
        __global const float *dyr = dy + row * width;
        __global float *dxr = dx + row * width;
        const int length = rows_per_length ? clamp(lens[row / rows_per_length], 0, width) : width;
        int c;

        FV sum_v = (FV)(0.0f);
        for (c = from; c + VW <= width; c += ROW_STEP)
            sum_v += VLOAD(yr + c) * VLOAD(dyr + c);
        if (c < width)
            sum_v += load_tail(yr, width, 0.0f) * load_tail(dyr, width, 0.0f);
        const float sum = GROUP_SUM(sum_lanes(sum_v), tmp);

        for (c = from; c < width; c += ROW_STEP) {
            const FV g = load_some(dyr + c, width - c, 0.0f) - sum;
            const FV d = load_some(yr + c, width - c, 0.0f) * g;
            store_some(LANES < (IV)(length - c) ? d : (FV)(0.0f), dxr + c, width - c);
        }
    }
}
