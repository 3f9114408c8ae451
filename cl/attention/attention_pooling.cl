// SPDX-License-Identifier: MIT
// Nadaraya-Watson kernel regression.  Host side: lib/op/attention/attention_pooling.c
//
//   w_ij = K(x_i - z_j) / sum_i K(x_i - z_j),   y_j = sum_i w_ij y_i
//
//   Work      one work-item = VW columns j, over all keys i, two or three times
//   Memory    reads keys and values from cache, writes the weights once
//   Numerics  Gaussian: relative to the nearest key, whose weight before division is 1; sums in
//             blocks of BLOCK keys.  Columns without weight give 0; NaN stays in its column, or with
//             a key in all
//
//   Macro    Meaning                 Values
//   LS       work-group size         1 .. 64
//   WEIGHTS  the weights are stored  0, 1

#include "common/pooling.clh"

#if !defined LS || !defined WEIGHTS
#error "LS and WEIGHTS must be defined"
#endif

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
