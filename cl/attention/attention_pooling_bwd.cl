// SPDX-License-Identifier: MIT
// Gradients of kernel regression.  Host side: lib/op/attention/attention_pooling_bwd.c
//
//   w_ij = K(u_ij) / S_j,   u_ij = x_i - z_j,   S_j = sum_i K(u_ij)
//   r_ij = g_j y_i + c_ij - sum_i w_ij (g_j y_i + c_ij),   du_ij = r_ij K'(u_ij) / S_j
//   dx_i = sum_j du_ij,   dz_j = -sum_i du_ij,   dy_i = sum_j w_ij g_j
//
//   Work      columns: one work-item = VW queries j, over all keys; rows: VW keys i, over all queries
//   Memory    the other side from cache; the columns' near key, 1 / S and mean in the scratch
//   Numerics  Gaussian weights relative to the nearest key, whose derivatives follow from them;
//             columns without weight give 0; sums in order
//
//   Macro  Meaning          Values
//   LS     work-group size  1 .. 64

#include "common/pooling.clh"

#ifndef LS
#error "LS: work-group size"
#endif

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

// A query far from all keys may have a slope beyond float's range, and weights that do not change.
static inline FV du(FV r, FV scale, FV slope)
{
    return r == 0.0f ? (FV)(0.0f) : r * scale * slope;
}

// keys, values: [n]; queries, g, dz: [m]; c: [n, m], read where has_c; inverse: 1 / |sigma|.
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
        moved -= du(r, scale, slope_of(x, z, e, inverse));
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
        moved += du(r, scale, slope_of(x, z, e, inverse));
        valued += e * scale * g[j];
    }
    store_some(moved, dx + first, width);
    store_some(valued, dy + first, width);
}
