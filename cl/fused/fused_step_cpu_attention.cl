// SPDX-License-Identifier: MIT
// One position of a layer of multi-head attention, from the layer norm to the output projection, CPU variant.
// The result is split-K partial sums.  Host side: lib/op/fused/fused_step.c
//
//   x' = x + (partials_bias + sum_s partials_in[s]),  z = LN(x')             channel_block.clh
//   q, k, v = z Wq_g^T + bq_g, z Wk_g^T + bk_g, z Wv_g^T + bv_g       a block: some of the heads
//   partials[g] = attention of q over the keys so far, Wo_g^T
//
//   Work      one work-group = one block of `block_width` channels, with whole groups of heads that share keys, for
//             all rows; heads do not mix before the output projection, so one launch does all.  Every
//             work-group reduces and normalises all rows, which is cheaper than another launch
//   Memory    reads each weight once; stores this position's keys and values in the caches
//             [limit][m][channels / kv_group], rounded to their type; reads the keys and values so far once per
//             group of heads; rows and a block's q, k and v in local memory
//   Numerics  float; projections as in skinny_gemm.clh, online softmax (attention_row.clh); the position
//             is clamped to the caches
//
//   Macro  Meaning                                    Values
//   VW     vector width, a divisor of a head's width  4 | 8 | 16
//   SLOTS  a position for each row                    0 | 1
//   SLOPES slopes times distances are added to scores 0 | 1
//   RING   position t is in row t mod limit, and all rows are read; without SLOPES   0 | 1

#include "common/attention_row.clh"
#include "common/softcap.clh"
#include "fused/channel_block.clh"

#if !defined CACHE_TYPE || !defined SLOTS || !defined SLOPES || !defined RING
#error "CACHE_TYPE, SLOTS, SLOPES and RING must be defined"
#endif

#if CACHE_TYPE == STORED_FLOAT
#define LINE_ELEMENTS 16 // elements of a cache line
#define VECTORS       1  // vectors of a row loaded at once
#else
#define LINE_ELEMENTS 32
#define VECTORS       4
#endif

LOCAL_INLINE void prefetch_row(__global const void *rows, long at, int width)
{
    for (int c = 0; c < width; c += LINE_ELEMENTS)
        prefetch_l2(stored_at(rows, at + c, CACHE_TYPE));
}

// Products of q with keys i .. i + VW - 1; keys from n on repeat the last one.
LOCAL_INLINE FV score_keys(__local const float *q, __global const void *keys, long row, int i,
                           int n, int width)
{
    FV sum[VW], x[VECTORS];
    int c = 0;

#pragma unroll
    for (int o = 0; o < VW; ++o)
        sum[o] = (FV)(0.0f);
    for (; c + VECTORS * VW <= width; c += VECTORS * VW) {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k)
            x[k] = VLOAD(q + c + k * VW);
#pragma unroll
        for (int o = 0; o < VW; ++o) {
            const long at = min(i + o, n - 1) * row + c;
#pragma unroll
            for (int k = 0; k < VECTORS; ++k)
                sum[o] += x[k] * load_stored(keys, at + k * VW, CACHE_TYPE);
        }
    }
    for (; c < width; c += VW) {
        x[0] = VLOAD(q + c);
#pragma unroll
        for (int o = 0; o < VW; ++o)
            sum[o] += x[0] * load_stored(keys, min(i + o, n - 1) * row + c, CACHE_TYPE);
    }
    return transpose_reduce(sum);
}

// The most elements of keys that stay in a core's caches from one step to the next.
#define MAX_CACHED 65536

// The scores of the first CHUNK of n keys, `row` elements apart, -inf after the last.  `fetch` prefetches the keys of
// the next chunk and the values of this one: a head's rows are too short and far apart for the hardware prefetcher.
LOCAL_INLINE void score_chunk(__local const float *q, __global const void *keys,
                              __global const void *values, long row, int n, int width, float scale,
                              float softcap, bool fetch, __local float *scores)
{
    for (int i = 0; i < CHUNK; i += VW) {
        FV y = (FV)(-INFINITY);
        if (i < n) {
            for (int o = i; fetch && o < i + VW; ++o) {
                prefetch_row(keys, (o + CHUNK) * row, width);
                prefetch_row(values, o * row, width);
            }
            y = LANES + i < n ? CAP_SCORE(v, scale * score_keys(q, keys, row, i, n, width), softcap)
                              : y;
        }
        VSTORE(y, scores + i);
    }
}

// position: [1], with SLOTS [m], a negative one stores nothing and has no keys; keys, values: [limit, m, channels /
// kv_group]; head: channels of a head; kv_group: heads that share keys; sums: [kv_group][head], then kv_group states
KERNEL void fused_step_cpu_attention(QKV_PARAMS, int head, int kv_group, int limit, int span,
                                     float scale, float softcap,
                                     __global const int *restrict position, __global void *keys,
                                     __global void *values, __local float *sums,
                                     __global const float *restrict slopes)
{
    SOFTMAX_LOCALS;
    m = ROW_COUNT(m);
#if !SLOTS
    const int t = clamp(position[0], 0, limit - 1);
#endif
    const int kv_channels = channels / kv_group;
    const long row = (long)m * kv_channels;
    __local struct online_softmax_state *r =
        (__local struct online_softmax_state *)(sums + kv_group * head);

    PROJECT_QKV(kv_group);
    for (int i = 0; i < m; ++i) {
#if SLOTS
        const int t = min(position[i], limit - 1);
        if (t < 0)
            continue;
#endif
        const int written = RING ? max(position[SLOTS ? i : 0], 0) % limit : t;
        for (int c = 0; c < kv_width; c += VW) {
            const long at = written * row + (long)i * kv_channels + kv_first + c;
            store_stored(VLOAD(k + i * kv_block_width + c), keys, at, CACHE_TYPE);
            store_stored(VLOAD(v + i * kv_block_width + c), values, at, CACHE_TYPE);
        }
    }
#if CACHE_TYPE != STORED_FLOAT
    mem_fence(CLK_GLOBAL_MEM_FENCE); // the caches are read as another type
#endif

    for (int i = 0; i < m; ++i) {
#if SLOTS
        const int t = clamp(position[i], -1, limit - 1);
#endif
        for (int c0 = 0; c0 < kv_width; c0 += head) {
            const long at = (long)i * kv_channels + kv_first + c0;
            __local float *y = q + i * block_width + c0 * kv_group;
            const bool fetch = min(t + 1, span) * row > MAX_CACHED;
            for (int o = 0; o < kv_group; ++o)
                r[o] = online_softmax_start(head, sums + o * head);
            for (int j0 = max(0, t + 1 - span); j0 <= t; j0 += CHUNK)
                for (int o = 0; o < kv_group; ++o) {
                    const int n = min(CHUNK, t + 1 - j0);
                    score_chunk(y + o * head, stored_at(keys, j0 * row + at, CACHE_TYPE),
                                stored_at(values, j0 * row + at, CACHE_TYPE), row, t + 1 - j0, head,
                                scale, softcap, fetch && o == 0, scores);
#if SLOPES
                    const float slope = slopes[(kv_first + c0) / head * kv_group + o];
                    for (int j = 0; j < n; ++j)
                        scores[j] += slope * (float)(j0 + j - t);
#endif
                    r[o] = online_softmax_update(r[o], scores, n,
                                                 stored_at(values, j0 * row + at, CACHE_TYPE),
                                                 CACHE_TYPE, row, head, sums + o * head, tmp);
                }
            for (int o = 0; o < kv_group; ++o) {
                const float factor = r[o].total == 0.0f ? 0.0f : 1.0f / r[o].total;
                for (int c = o * head; c < (o + 1) * head; c += VW)
                    VSTORE(VLOAD(sums + c) * factor, y + c);
            }
        }
    }
    store_partial(q, m, block_width, width, wo + first, channels, d_out, prefetch_rows_2, group,
                  out);
}
