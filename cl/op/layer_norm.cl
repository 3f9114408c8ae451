// SPDX-License-Identifier: MIT
// Layer normalisation.  Host side: lib/op/layer_norm.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x three times, the second and third time from cache, and writes y once
//   Numerics  the variance is a second pass around the mean, which that pass also corrects: no cancellation, however
//             large the mean is beside the spread
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/reduce.clh"
#include "common/vector.clh"

// A row is `parts` pieces of `width` floats, `stride` apart: one piece, but for views normalised over several axes.
// weight, bias: [parts, width]; y: [rows, parts, width]
KERNEL void layer_norm_rows_fwd(__global const float *restrict x, __global const float *restrict weight,
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
        FV sum_v = (FV)(0.0f);
        for (int part = 0; part < parts; ++part) {
            __global const float *xp = xr + part * stride;
            for (c = from; c + VW <= width; c += VW * LS)
                sum_v += VLOAD(xp + c);
            if (c < width)
                sum_v += load_part(xp + c, width - c, 0.0f);
        }
        const float mean = GROUP_SUM(sum_lanes(sum_v), tmp) / n;

        // Pass 2: distances from it, whose own mean is what the rounding left out, and their squares.
        FV distance_v = (FV)(0.0f), square_v = (FV)(0.0f);
        for (int part = 0; part < parts; ++part) {
            __global const float *xp = xr + part * stride;
            for (c = from; c + VW <= width; c += VW * LS) {
                const FV d = VLOAD(xp + c) - mean;
                distance_v += d;
                square_v += d * d;
            }
            if (c < width) {
                const FV d = load_part(xp + c, width - c, mean) - mean;
                distance_v += d;
                square_v += d * d;
            }
        }
        const float rest = GROUP_SUM(sum_lanes(distance_v), tmp) / n;
        const float variance = fmax(GROUP_SUM(sum_lanes(square_v), tmp) / n - rest * rest, 0.0f);
        const float scale = 1.0f / sqrt(variance + eps);

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
                const int n_left = width - c;
                const FV d = (load_part(xp + c, n_left, 0.0f) - mean) - rest;
                store_part(d * scale * load_part(w + c, n_left, 0.0f) + load_part(b + c, n_left, 0.0f),
                           yp + c, n_left);
            }
        }
    }
}
