// SPDX-License-Identifier: MIT
// Nadaraya-Watson kernel regression and its gradients.  Host side: lib/op/attention/attention_pooling.c
//
//   w_ij = K(u_ij) / S_j,   u_ij = x_i - z_j,   S_j = sum_i K(u_ij),   y_j = sum_i w_ij y_i
//   r_ij = g_j y_i + c_ij - sum_i w_ij (g_j y_i + c_ij),   du_ij = r_ij K'(u_ij) / S_j
//   dx_i = sum_j du_ij,   dz_j = -sum_i du_ij,   dy_i = sum_j w_ij g_j
//
//   Work      columns: one work-item = VW columns j, over all keys i, two or three times; rows: VW keys i, over all
//             queries
//   Memory    the other side from cache; the weights are written once; backward, the scratch has the columns' nearest
//             key, 1 / S and mean
//   Numerics  Gaussian: relative to the nearest key, whose weight before division is 1; derivatives use these weights.
//             Sums forward in blocks of BLOCK keys, backward in order.  Columns without weight give 0; a NaN query
//             affects its column, a NaN key all columns
//
//   Macro    Meaning                                    Values
//   KIND     Gaussian, boxcar, constant, Epanechikov    0 .. 3
//   LS       work-group size                            1 .. 64
//   WEIGHTS  store the weights                          0, 1

#include "common/kinds.clh"
#include "common/math.clh"

#if !defined KIND || !defined LS || !defined WEIGHTS
#error "KIND, LS and WEIGHTS must be defined"
#endif

#if KIND == POOL_GAUSSIAN
// (|z - x|^2 - |z - near|^2) / (2 sigma^2) as a product of differences, which is precise even if the
// squares, or both distances of a query far from all keys, round to the same float.
static inline FV extra_distance(FV x, FV near, FV z, float inverse)
{
    const FV apart = (0.5f * x - 0.5f * near) * inverse;
    const FV sum = ((0.5f * x - 0.5f * z) + (0.5f * near - 0.5f * z)) * inverse;
    return apart == 0.0f || sum == 0.0f ? z - z : 2.0f * apart * sum;
}
#endif

// The nearest key of each column.
static inline FV nearest_key(__global const float *keys, int n, FV z, float inverse)
{
    FV near = (FV)(n > 0 ? keys[0] : 0.0f);
#if KIND == POOL_GAUSSIAN
    for (int i = 1; i < n; ++i)
        near = extra_distance((FV)(keys[i]), near, z, inverse) < 0.0f ? (FV)(keys[i]) : near;
#endif
    return near;
}

static inline FV weight_of(FV x, FV near, FV z, float inverse)
{
#if KIND == POOL_GAUSSIAN
    const FV e = extra_distance(x, near, z, inverse);
    return exp_nonpos_v(e < 0.0f ? (FV)(0.0f) : -e);
#elif KIND == POOL_CONSTANT
    return (FV)(1.0f);
#else
    const FV u = fabs(x - z);
#if KIND == POOL_BOXCAR
    return u != u ? u : u < 1.0f ? (FV)(1.0f) : (FV)(0.0f);
#else
    return u > 1.0f ? (FV)(0.0f) : 1.0f - u;
#endif
#endif
}

enum { BLOCK = 64 };

// keys, values: [n]; queries, y: [m]; weights: [n, m]; inverse: 1 / |sigma|
KERNEL void attention_pooling_columns_fwd(__global const float *restrict keys,
                                          __global const float *restrict values,
                                          __global const float *restrict queries,
                                          __global float *restrict y,
                                          __global float *restrict weights, int n, int m,
                                          float inverse)
{
    const int first = (int)get_global_id(0) * VW, width = m - first;

    if (width <= 0)
        return;
    const FV z = load_some(queries + first, width, 0.0f), near = nearest_key(keys, n, z, inverse);
    FV sum = (FV)(0.0f), weighted = (FV)(0.0f);
    for (int from = 0; from < n; from += BLOCK) {
        FV s = (FV)(0.0f), w = (FV)(0.0f);
        for (int i = from; i < min(from + BLOCK, n); ++i) {
            const FV e = weight_of((FV)(keys[i]), near, z, inverse);
            s += e;
            w += e * values[i];
        }
        sum += s;
        weighted += w;
    }
    store_some(sum == 0.0f ? (FV)(0.0f) : weighted / sum, y + first, width);
#if WEIGHTS
    const FV scale = sum == 0.0f ? (FV)(0.0f) : 1.0f / sum;
    for (int i = 0; i < n; ++i)
        store_some(weight_of((FV)(keys[i]), near, z, inverse) * scale,
                   weights + (long)i * m + first, width);
#endif
}

// -- backward

// K'(u) from K(u).
static inline FV slope_of(FV x, FV z, FV weight, float inverse)
{
#if KIND == POOL_GAUSSIAN
    return weight == 0.0f ? (FV)(0.0f) : -(((x - z) * inverse) * inverse) * weight;
#elif KIND == POOL_EPANECHIKOV
    const FV u = x - z;
    return weight == 0.0f || u == 0.0f ? (FV)(0.0f) : -copysign((FV)(1.0f), u);
#else
    return (FV)(0.0f);
#endif
}

// Avoids inf * 0: a query far from all keys may have an infinite slope and r = 0.
static inline FV scale_slope(FV r, FV scale, FV slope)
{
#if KIND == POOL_GAUSSIAN || KIND == POOL_EPANECHIKOV
    return r == 0.0f ? (FV)(0.0f) : r * scale * slope;
#else
    return r - r; // Mesa (22.3) makes r times a constant slope of 0 a 0 even where r is NaN
#endif
}

// keys, values: [n]; queries, g, dz: [m]; c: [n, m], read if has_c; inverse: 1 / |sigma|.
// columns: [3][m], the nearest key, 1 / S, the mean.
KERNEL void attention_pooling_bwd_columns(__global const float *restrict keys,
                                          __global const float *restrict values,
                                          __global const float *restrict queries,
                                          __global const float *restrict g,
                                          __global const float *restrict c, int has_c,
                                          __global float *restrict columns,
                                          __global float *restrict dz, int n, int m, float inverse)
{
    const int first = (int)get_global_id(0) * VW, width = m - first;

    if (width <= 0)
        return;
    const FV z = load_some(queries + first, width, 0.0f), near = nearest_key(keys, n, z, inverse);
    const FV gradient = load_some(g + first, width, 0.0f);
    FV sum = (FV)(0.0f), mean = (FV)(0.0f), moved = (FV)(0.0f);
    for (int i = 0; i < n; ++i) {
        const FV e = weight_of((FV)(keys[i]), near, z, inverse);
        FV r = gradient * values[i];
        if (has_c)
            r += load_some(c + (long)i * m + first, width, 0.0f);
        sum += e;
        mean += e * r;
    }
    const FV scale = sum == 0.0f ? (FV)(0.0f) : 1.0f / sum;
    mean *= scale;
    for (int i = 0; i < n; ++i) {
        const FV x = (FV)(keys[i]), e = weight_of(x, near, z, inverse);
        FV r = gradient * values[i] - mean;
        if (has_c)
            r += load_some(c + (long)i * m + first, width, 0.0f);
        moved -= scale_slope(r, scale, slope_of(x, z, e, inverse));
    }
    store_some(near, columns + first, width);
    store_some(scale, columns + m + first, width);
    store_some(mean, columns + 2 * (long)m + first, width);
    store_some(moved, dz + first, width);
}

KERNEL void attention_pooling_bwd_rows(
    __global const float *restrict keys, __global const float *restrict values,
    __global const float *restrict queries, __global const float *restrict g,
    __global const float *restrict c, int has_c, __global const float *restrict columns,
    __global float *restrict dx, __global float *restrict dy, int n, int m, float inverse)
{
    const int first = (int)get_global_id(0) * VW, width = n - first;

    if (width <= 0)
        return;
    const FV x = load_some(keys + first, width, 0.0f), y = load_some(values + first, width, 0.0f);
    FV moved = (FV)(0.0f), valued = (FV)(0.0f);
    for (int j = 0; j < m; ++j) {
        const FV z = (FV)(queries[j]), scale = (FV)(columns[m + j]);
        const FV e = weight_of(x, (FV)(columns[j]), z, inverse);
        FV r = g[j] * y - columns[2 * (long)m + j];
        if (has_c) {
            float own[VW];
            for (int i = 0; i < VW; ++i)
                own[i] = i < width ? c[(long)(first + i) * m + j] : 0.0f;
            r += VLOAD(own);
        }
        moved += scale_slope(r, scale, slope_of(x, z, e, inverse));
        valued += e * scale * g[j];
    }
    store_some(moved, dx + first, width);
    store_some(valued, dy + first, width);
}
