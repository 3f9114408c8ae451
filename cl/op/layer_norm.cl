// SPDX-License-Identifier: MIT
// Layer normalisation.  Host side: lib/op/layer_norm.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x three times, the second and third time from cache, and writes y once
//   Numerics  the variance is a second pass around the mean, which that pass also corrects: no
//             cancellation, however large the mean is beside the spread
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/norm.clh"

// A work-item's part of the sum of one row.
static inline float row_sum(__global const float *x, long stride, int width, int parts)
{
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part)
        sum += item_sum(x + part * stride, width);
    return sum;
}

// y = (x - mean - rest) * scale * weight + bias over one piece; norm: mean, rest, scale.  Returns
// the work-item's part of the sum of `next`, the same piece of the next row, 0 when there is none:
// its memory arrives behind this row's arithmetic.
static inline float write_piece(__global const float *x, __global const float *weight,
                                __global const float *bias, __global float *y,
                                __global const float *next, int width, float3 norm)
{
    int c = VW * (int)get_local_id(0);
    FV a0 = (FV)(0.0f), a1 = a0;

    for (; c + ROW_STEP + VW <= width; c += 2 * ROW_STEP) {
        const int e = c + ROW_STEP;
        const FV d0 = (VLOAD(x + c) - norm.x) - norm.y, d1 = (VLOAD(x + e) - norm.x) - norm.y;
        VSTORE(d0 * norm.z * VLOAD(weight + c) + VLOAD(bias + c), y + c);
        VSTORE(d1 * norm.z * VLOAD(weight + e) + VLOAD(bias + e), y + e);
        if (next) {
            a0 += VLOAD(next + c);
            a1 += VLOAD(next + e);
        }
    }
    for (; c + VW <= width; c += ROW_STEP) {
        const FV d = (VLOAD(x + c) - norm.x) - norm.y;
        VSTORE(d * norm.z * VLOAD(weight + c) + VLOAD(bias + c), y + c);
        if (next)
            a0 += VLOAD(next + c);
    }
    if (c < width) {
        const FV d = (load_tail(x, width, 0.0f) - norm.x) - norm.y;
        const FV w = load_tail(weight, width, 0.0f), b = load_tail(bias, width, 0.0f);
        store_tail(d * norm.z * w + b, y, width);
        if (next)
            a1 += load_tail(next, width, 0.0f);
    }
    return sum_lanes(a0 + a1);
}

// A row is `parts` pieces of `width` floats, `stride` apart: one piece, but for views normalised
// over several axes.  weight, bias: [parts, width]; y: [rows, parts, width]
KERNEL void layer_norm_rows_fwd(__global const float *restrict x,
                                __global const float *restrict weight,
                                __global const float *restrict bias, __global float *restrict y,
                                long start, long stride, int width, int parts, long rows,
                                int per_group, float eps)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const float n = (float)width * (float)parts;
    const long row_stride = parts * stride;
    float sum = row_sum(x + start + first * row_stride, stride, width, parts);

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * row_stride;
        __global float *yr = y + row * parts * width;

        // Pass 1, done with the row before: the mean, rounded.
        const float mean = GROUP_SUM(sum, tmp) / n;

        // Pass 2: distances from it, whose own mean is what rounding left out, and their squares.
        float2 d = row_distances(xr, stride, width, parts, mean);
        d = (float2)(GROUP_SUM(d.x, tmp), GROUP_SUM(d.y, tmp));
        const float rest = d.x / n;
        const float scale = norm_scale(d, n, eps);

        // Pass 3: normalise.
        sum = 0.0f;
        for (int part = 0; part < parts; ++part) {
            const long at = (long)part * width;
            __global const float *xp = xr + part * stride;
            __global const float *next = row + 1 < end ? xp + row_stride : 0;
            sum += write_piece(xp, weight + at, bias + at, yr + at, next, width,
                               (float3)(mean, rest, scale));
        }
    }
}
