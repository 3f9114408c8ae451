// SPDX-License-Identifier: MIT
// Attention of one position over the keys so far, for decoding, on CPUs.  Host side:
// lib/op/attention/attention_step.c
//
//   Work      one work-item = `at_once` heads of one batch entry, which share their keys
//   Memory    stores this position's key and value in the caches [limit][batch][key heads * width],
//             rounded to their type, or as rows in 8 bits (q8_row.clh); reads the last `span` up to it; `sums`
//             [at_once][width], whole vectors, in local memory, then as many queries, a key, and a state each
//   Numerics  float, online softmax; the position is clamped to the caches
//
//   Macro       Meaning                                                                            Values
//   RING        position t is in row t mod limit, and all rows are read; without SLOPES            0 | 1
//   SLOTS       a position for each batch entry, where a negative one stores nothing, gives zeros  0 | 1
//   SLOPES      slopes times distances are added to scores                                         0 | 1
//   CACHE_TYPE  as in stored.clh; 3: rows in 8 bits                                                0 | 1 | 2 | 3

#include "common/attention_row.clh"

#include "attention/head_row.clh"
#include "common/softcap.clh"

#if !defined CACHE_TYPE || !defined SLOTS || !defined SLOPES || !defined RING
#error "CACHE_TYPE, SLOTS, SLOPES and RING must be defined"
#endif

// The query with the key that begins at element `at` of the cache.
LOCAL_INLINE float dot_rows(__local const float *query, __global const void *keys, long at,
                            int width)
{
    FV sum_v = (FV)(0.0f);
    int d = 0;

    for (; d + VW <= width; d += VW)
        sum_v += VLOAD(query + d) * load_stored(keys, at + d, CACHE_TYPE);
    if (d < width)
        sum_v += VLOAD(query + d) * load_stored_part(keys, at + d, width - d, CACHE_TYPE);
    return horizontal_sum(sum_v);
}

#if CACHE_TYPE == STORED_Q8
#define TIMES_SCALE(rows, j) *Q8_SCALE_AT(rows, (j)*row + scale_at)
#else
#define TIMES_SCALE(rows, j)
#endif

// q, k, v: rows of all heads, `_stride` apart per batch entry; kv_group heads of q share one of k and v.  Where they
// are several work-items, all of them store the same.
KERNEL void attention_step_cpu_fwd(__global const float *restrict q, long q_start, long q_stride,
                                   __global const float *restrict k, long k_start, long k_stride,
                                   __global const float *restrict v, long v_start, long v_stride,
                                   __global const int *restrict position, __global void *keys,
                                   __global void *values, __global float *restrict y, int batch,
                                   int n_heads, int kv_group, int at_once, int width, int limit,
                                   int span, float scale, float softcap, __local float *sums,
                                   __global const float *restrict slopes, HEAD_FORMS)
{
    SOFTMAX_LOCALS;
    const int head = (int)get_group_id(0) * at_once, b = head / n_heads, h = head - b * n_heads;
    const int p = clamp(position[SLOTS ? b : 0], SLOTS ? -1 : 0, RING ? INT_MAX : limit - 1);
    const int t = RING ? min(p, limit - 1) : p, written = RING ? p % limit : p;
    const int pitch = (width + VW - 1) / VW * VW;
    const long kv_h = h / kv_group;
#if CACHE_TYPE == STORED_Q8
    const int kv_heads = n_heads / kv_group;
    const long entry = Q8_ROW_BYTES(kv_heads * width, kv_heads), row = batch * entry;
    const long at = b * entry + kv_h * width;
    const long scale_at = b * entry + Q8_SCALES(kv_heads * width) + 4 * kv_h;
#else
    const long row = (long)batch * (n_heads / kv_group) * width;
    const long at = (long)(head / kv_group) * width, scale_at = at;
#endif
    __local float *const query = sums + at_once * pitch, *const fresh = query + at_once * pitch;
    __local struct online_softmax_state *r = (__local struct online_softmax_state *)(fresh + pitch);

    if (t >= 0) {
        load_head(k + k_start + b * k_stride + kv_h * width, width, fresh);
        prepare_head(fresh, width, HEAD_NORM & 2, key_norm, eps, table, n_positions, p, pairs, tmp);
        store_head(fresh, width, keys, written * row + at, scale_at - at);
        load_head(v + v_start + b * v_stride + kv_h * width, width, fresh);
        store_head(fresh, width, values, written * row + at, scale_at - at);
    }
#if CACHE_TYPE != STORED_FLOAT
    mem_fence(CLK_GLOBAL_MEM_FENCE); // they are read as another type
#endif
    for (int o = 0; o < at_once; ++o) {
        __local float *const head_query = query + o * pitch;
        load_head(q + q_start + b * q_stride + (long)(h + o) * width, width, head_query);
        prepare_head(head_query, width, HEAD_NORM & 1, query_norm, eps, table, n_positions, p,
                     pairs, tmp);
        r[o] = online_softmax_start(width, sums + o * pitch);
    }
    for (int j0 = max(0, t + 1 - span); j0 <= t; j0 += CHUNK)
        for (int o = 0; o < at_once; ++o) {
            const int n = min(CHUNK, t + 1 - j0);
            for (int i = 0; i < CHUNK; ++i)
                scores[i] =
                    i < n ? CAP_SCORE(f,
                                      scale * dot_rows(query + o * pitch, keys, (j0 + i) * row + at,
                                                       width) TIMES_SCALE(keys, j0 + i),
                                      softcap)
                          : -INFINITY;
#if SLOPES
            for (int i = 0; i < n; ++i)
                scores[i] += slopes[h + o] * (float)(j0 + i - t);
#endif
            float factor;
            r[o] = online_softmax_exponentials(r[o], scores, tmp, &factor);
#if CACHE_TYPE == STORED_Q8
            for (int i = 0; i < n; ++i)
                scores[i] = scores[i] TIMES_SCALE(values, j0 + i);
#endif
            online_softmax_add(factor, scores, n, stored_at(values, j0 * row + at, CACHE_TYPE),
                               CACHE_TYPE, row, width, sums + o * pitch);
        }
    for (int o = 0; o < at_once; ++o)
        online_softmax_store(r[o], sums + o * pitch, width, y + (long)(head + o) * width);
}
