// SPDX-License-Identifier: MIT
// Attention of one position over the keys so far, for decoding, on CPUs.  Host side:
// lib/op/attention/attention_step.c
//
//   Work      one work-item = one head of one batch entry
//   Memory    stores this position's key and value in the caches [limit][batch][heads * width],
//             rounded to their type; reads all up to it; `sums` [width] in local memory
//   Numerics  float, online softmax; the position is clamped to the caches

#include "common/attention_row.clh"

#ifndef CACHE_TYPE
#error "CACHE_TYPE: type of the caches' elements"
#endif

// The query with the key that begins at element `at` of the cache.
static inline float dot_rows(__global const float *query, __global const void *keys, long at,
                             int width)
{
    FV sum_v = (FV)(0.0f);
    int d = 0;

    for (; d + VW <= width; d += VW)
        sum_v += VLOAD(query + d) * load_stored(keys, at + d, CACHE_TYPE);
    if (d < width)
        sum_v += load_part(query + d, width - d, 0.0f) *
                 load_stored_part(keys, at + d, width - d, CACHE_TYPE);
    return horizontal_sum(sum_v);
}

// q, k, v: rows of all heads, `_stride` apart per batch entry.
KERNEL void attention_step_cpu_fwd(__global const float *restrict q, long q_start, long q_stride,
                                   __global const float *restrict k, long k_start, long k_stride,
                                   __global const float *restrict v, long v_start, long v_stride,
                                   __global const int *restrict position, __global void *keys,
                                   __global void *values, __global float *restrict y, int batch,
                                   int n_heads, int width, int limit, float scale,
                                   __local float *sums)
{
    SOFTMAX_LOCALS;
    const int b = (int)get_group_id(0) / n_heads, h = (int)get_group_id(0) - b * n_heads;
    const int t = clamp(position[0], 0, limit - 1);
    const long row = (long)batch * n_heads * width, at = (long)get_group_id(0) * width;
    __global const float *query = q + q_start + b * q_stride + (long)h * width;
    __global const float *key = k + k_start + b * k_stride + (long)h * width;
    __global const float *value = v + v_start + b * v_stride + (long)h * width;

    for (int d = 0; d < width; ++d) {
        store_stored_one(key[d], keys, t * row + at + d, CACHE_TYPE);
        store_stored_one(value[d], values, t * row + at + d, CACHE_TYPE);
    }
#if CACHE_TYPE != STORED_FLOAT
    mem_fence(CLK_GLOBAL_MEM_FENCE); // they are read as another type
#endif
    struct online_softmax_state r = online_softmax_start(width, sums);
    for (int j0 = 0; j0 <= t; j0 += CHUNK) {
        const int n = min(CHUNK, t + 1 - j0);
        for (int i = 0; i < CHUNK; ++i)
            scores[i] =
                i < n ? scale * dot_rows(query, keys, (j0 + i) * row + at, width) : -INFINITY;
        r = online_softmax_update(r, scores, n, stored_at(values, j0 * row + at, CACHE_TYPE),
                                  CACHE_TYPE, row, width, sums, tmp);
    }
    online_softmax_store(r, sums, width, y + at);
}
