// SPDX-License-Identifier: MIT
// softmax over the last axis of [B, Q, K] in which columns from a row's length on score -1e6.
// Host side: lib/op/masked_softmax.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads the visible columns of x twice, writes y and reads its visible columns once more
//   Numerics  as softmax; the masked score is a finite number that competes: length 0 gives 1/K
//             everywhere.  All masked columns of a row have one value
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/math.clh"
#include "common/rows.clh"

#define MASKED_SCORE -1e6f

// lens: absent (rows_per_length 0), or one for each `rows_per_length` rows.  The other arguments as
// in softmax.cl.
KERNEL void masked_softmax_rows_fwd(__global const float *restrict x,
                                    __global const int *restrict lens, __global float *restrict y,
                                    long start, long stride, int width, long rows, int per_group,
                                    long rows_per_length)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        __global float *yr = y + row * width;
        const int length = rows_per_length ? clamp(lens[row / rows_per_length], 0, width) : width;
        int c;

        // Pass 1: the largest score.
        const float visible = ROW_MAX(xr, length, tmp);
        const float largest = length < width ? fmax(visible, MASKED_SCORE) : visible;
        const float top = largest == -INFINITY ? 0.0f : largest;
        const float masked = exp_nonpos_f(MASKED_SCORE - top);

        // Pass 2: numerators of the visible columns, and the sum of all.
        FV sum_v = (FV)(0.0f);
        for (c = from; c + VW <= length; c += VW * LS) {
            const FV e = exp_nonpos_v(VLOAD(xr + c) - top);
            VSTORE(e, yr + c);
            sum_v += e;
        }
        if (c < length) {
            const FV e = exp_nonpos_v(load_tail(xr, length, -INFINITY) - top);
            store_tail(e, yr, length);
            sum_v += e;
        }
        float sum = GROUP_SUM(sum_lanes(sum_v), tmp);
        sum += length < width ? masked * (float)(width - length) : 0.0f;

        // Pass 3: each work-item divides what it wrote itself; the masked columns.
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (c = from; c + VW <= length; c += VW * LS)
            VSTORE(VLOAD(yr + c) * factor, yr + c);
        if (c < length)
            store_tail(load_tail(yr, length, 0.0f) * factor, yr, length);
        for (c = length + from; c < width; c += VW * LS)
            store_some((FV)(masked * factor), yr + c, width - c);
    }
}
