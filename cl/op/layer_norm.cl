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

#include "common/rows.clh"

// A row is `parts` pieces of `width` floats, `stride` apart: one piece, but for views normalised
// over several axes. weight, bias: [parts, width]; y: [rows, parts, width]
KERNEL void layer_norm_rows_fwd(__global const float *restrict x,
                                __global const float *restrict weight,
                                __global const float *restrict bias, __global float *restrict y,
                                long start, long stride, int width, int parts, long rows,
                                int per_group, float eps)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int from = VW * (int)get_local_id(0);
    const float n = (float)width * (float)parts;

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * parts * stride;
        __global float *yr = y + row * parts * width;
        int c;

        // Pass 1: the mean, rounded.
        float sum = 0.0f;
        for (int part = 0; part < parts; ++part)
            sum += item_sum(xr + part * stride, width);
        const float mean = GROUP_SUM(sum, tmp) / n;

        // Pass 2: distances from it, whose own mean is what the rounding left out, and their
        // squares.
        FV distance_v = (FV)(0.0f), square_v = (FV)(0.0f);
        FV distance_2 = (FV)(0.0f), square_2 = (FV)(0.0f); // of every second vector
        for (int part = 0; part < parts; ++part) {
            __global const float *xp = xr + part * stride;
            for (c = from; c + ROW_STEP + VW <= width; c += 2 * ROW_STEP) {
                const FV d = VLOAD(xp + c) - mean, d2 = VLOAD(xp + c + ROW_STEP) - mean;
                distance_v += d;
                square_v += d * d;
                distance_2 += d2;
                square_2 += d2 * d2;
            }
            for (; c < width; c += ROW_STEP) {
                const FV v = c + VW <= width ? VLOAD(xp + c) : load_part(xp + c, width - c, mean);
                const FV d = v - mean;
                distance_v += d;
                square_v += d * d;
            }
        }
        const float rest = GROUP_SUM(sum_lanes(distance_v + distance_2), tmp) / n;
        const float squares = GROUP_SUM(sum_lanes(square_v + square_2), tmp) / n;
        const float scale = 1.0f / sqrt(fmax(squares - rest * rest, 0.0f) + eps);

        // Pass 3: normalise.
        for (int part = 0; part < parts; ++part) {
            __global const float *xp = xr + part * stride;
            __global const float *w = weight + (long)part * width;
            __global const float *b = bias + (long)part * width;
            __global float *yp = yr + (long)part * width;
            for (c = from; c + VW <= width; c += VW * LS) {
                const FV d = (VLOAD(xp + c) - mean) - rest;
                VSTORE(d * scale * VLOAD(w + c) + VLOAD(b + c), yp + c);
            }
            if (c < width) {
                const int left = width - c;
                const FV d = (load_part(xp + c, left, 0.0f) - mean) - rest;
                const FV scaled = d * scale * load_part(w + c, left, 0.0f);
                store_part(scaled + load_part(b + c, left, 0.0f), yp + c, left);
            }
        }
    }
}
