// SPDX-License-Identifier: MIT
// softmax over the last axis of [B, Q, K] in which columns from a row's length on score -1e6.
// Host side: lib/op/masked_softmax.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads the visible columns of x twice, writes y and reads it once more
//   Numerics  as softmax; the masked score is a finite number that competes: length 0 gives 1/K
//             everywhere
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/math.clh"
#include "common/reduce.clh"

#define MASKED_SCORE -1e6f

// Scores at columns c, c + 1 ...: x before `length`, MASKED_SCORE before `width`, beyond it what
// counts for nothing.
static inline FV scores(__global const float *xr, int c, int length, int width)
{
    if (c + VW <= length)
        return VLOAD(xr + c);
    const FV x = c < length ? load_part(xr + c, length - c, 0.0f) : (FV)(0.0f);
    const FV shown = LANES < (IV)(length - c) ? x : (FV)(MASKED_SCORE);
    return LANES < (IV)(width - c) ? shown : (FV)(-INFINITY);
}

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
        FV top_v = (FV)(-INFINITY);
        for (c = from; c < width; c += VW * LS)
            top_v = max_v(scores(xr, c, length, width), top_v);
        const float largest = GROUP_MAX(max_lanes(top_v), tmp);
        const float top = largest == -INFINITY ? 0.0f : largest;

        // Pass 2: numerators and their sum.
        FV sum_v = (FV)(0.0f);
        for (c = from; c < width; c += VW * LS) {
            const FV e = exp_nonpos_v(scores(xr, c, length, width) - top);
            if (c + VW <= width)
                VSTORE(e, yr + c);
            else
                store_part(e, yr + c, width - c);
            sum_v += e;
        }
        const float sum = GROUP_SUM(sum_lanes(sum_v), tmp);

        // Pass 3: each work-item divides what it wrote itself.
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (c = from; c + VW <= width; c += VW * LS)
            VSTORE(VLOAD(yr + c) * factor, yr + c);
        if (c < width)
            store_part(load_part(yr + c, width - c, 0.0f) * factor, yr + c, width - c);
    }
}
