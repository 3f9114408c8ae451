// SPDX-License-Identifier: MIT
// The gradients of layer normalisation.  Host side: lib/op/layer_norm_bwd.c
//
//   Work      rows: a group takes a block of `block` rows, work-item i vectors i, i + LS ... of
//             each, always the same columns; sum: work-items take vectors of columns
//   Memory    reads x four times and dy twice, all but the first time from cache; writes dx once
//             and, for each block, a row of partial sums, which it updates row by row in cache
//   Numerics  mean and variance as in layer_norm.cl; sums over rows in their order
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/rows.clh"

// A work-item's sums over one row of x - mean and of its square.
static inline float2 distances(__global const float *x, int width, float mean)
{
    FV d = (FV)(0.0f), s = d;

    for (int c = VW * (int)get_local_id(0); c < width; c += ROW_STEP) {
        const FV v = (c + VW <= width ? VLOAD(x + c) : load_tail(x, width, mean)) - mean;
        d += v;
        s += v * v;
    }
    return (float2)(sum_lanes(d), sum_lanes(s));
}

// The same of g = dy weight and of g h;  h = (x - norm.x) norm.y
static inline float2 row_sums(__global const float *x, __global const float *weight,
                              __global const float *dy, int width, float2 norm)
{
    FV g_sum = (FV)(0.0f), gh_sum = g_sum;

    for (int c = VW * (int)get_local_id(0); c < width; c += ROW_STEP) {
        const int n = width - c;
        const FV g = load_some(dy + c, n, 0.0f) * load_some(weight + c, n, 0.0f);
        const FV h = (load_some(x + c, n, 0.0f) - norm.x) * norm.y;
        g_sum += g;
        gh_sum += g * h;
    }
    return (float2)(sum_lanes(g_sum), sum_lanes(gh_sum));
}

// x, dy, dx: [rows, width]; parts: [blocks, 2, width], the sums of dy h and of dy
KERNEL void layer_norm_bwd_rows(__global const float *restrict x,
                                __global const float *restrict weight,
                                __global const float *restrict dy, __global float *restrict dx,
                                __global float *restrict parts, int width, long rows, int block,
                                float eps)
{
    GROUP_SPACE(tmp);
    const long first = (long)get_group_id(0) * block;
    const long end = min(first + block, rows);
    const float n = (float)width;
    const int from = VW * (int)get_local_id(0);
    __global float *dw = parts + 2 * (long)get_group_id(0) * width, *db = dw + width;

    for (int c = from; c < width; c += ROW_STEP) {
        store_some((FV)(0.0f), dw + c, width - c);
        store_some((FV)(0.0f), db + c, width - c);
    }
    for (long row = first; row < end; ++row) {
        __global const float *xr = x + row * width, *dyr = dy + row * width;
        __global float *dxr = dx + row * width;

        // The mean, rounded, and what rounding left out; then the spread.
        const float mean = GROUP_SUM(item_sum(xr, width), tmp) / n;
        const float2 d = distances(xr, width, mean);
        const float rest = GROUP_SUM(d.x, tmp) / n;
        const float variance = fmax(GROUP_SUM(d.y, tmp) / n - rest * rest, 0.0f);
        const float2 norm = (float2)(mean + rest, 1.0f / sqrt(variance + eps));

        const float2 sums = row_sums(xr, weight, dyr, width, norm);
        const float g_mean = GROUP_SUM(sums.x, tmp) / n;
        const float gh_mean = GROUP_SUM(sums.y, tmp) / n;

        for (int c = from; c < width; c += ROW_STEP) {
            const int left = width - c;
            const FV d_y = load_some(dyr + c, left, 0.0f);
            const FV h = (load_some(xr + c, left, 0.0f) - norm.x) * norm.y;
            const FV g = d_y * load_some(weight + c, left, 0.0f);
            store_some(norm.y * ((g - g_mean) - h * gh_mean), dxr + c, left);
            store_some(load_some(dw + c, left, 0.0f) + d_y * h, dw + c, left);
            store_some(load_some(db + c, left, 0.0f) + d_y, db + c, left);
        }
    }
}

// The blocks of parts, added in their order.
KERNEL void layer_norm_bwd_sum(__global const float *restrict parts, __global float *restrict dw,
                               __global float *restrict db, int width, long blocks, int per_group)
{
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, width);

    for (int c = first + VW * (int)get_local_id(0); c < end; c += ROW_STEP) {
        FV w = (FV)(0.0f), b = w;
        for (long k = 0; k < blocks; ++k) {
            __global const float *part = parts + 2 * k * width + c;
            w += load_some(part, end - c, 0.0f);
            b += load_some(part + width, end - c, 0.0f);
        }
        store_some(w, dw + c, end - c);
        store_some(b, db + c, end - c);
    }
}
