// SPDX-License-Identifier: MIT
// One position of a layer of multi-head attention, from the layer norm to the output projection,
// its result split-K partial sums, CPU variant.  Host side: lib/op/fused/fused_step_attention.c
//
//   x' = x + (partials_bias + sum_s partials_in[s]),  z = LN(x')             prenorm_prologue.clh
//   q, k, v = z Wq_g^T + bq_g, z Wk_g^T + bk_g, z Wv_g^T + bv_g       a block: some of the heads
//   partials[g] = attention of q over the keys so far, Wo_g^T
//
//   Work      one work-group = one block of `block_width` channels, whole heads, for all rows: heads do not
//             mix before the output projection, so that all of it is one launch.  Each work-group reduces and
//             normalises all rows redundantly: cheaper than a launch
//   Memory    reads each weight once; stores this position's keys and values in the caches
//             [limit][m][channels], reads all up to it; rows and a block's q, k and v in local
//             memory
//   Numerics  float; products as in skinny_gemm.clh, online softmax (attention_row.clh); the position
//             is clamped to the caches
//
//   Macro      Meaning                                              Values
//   LS         work-group size                                      1
//   VW         vector width, a divisor of a head's width            4 | 8 | 16
//   COLS_PER_PASS MAX_ROWS HAS_K_TAIL USE_PREFETCH WTYPE   as in skinny_gemm.clh, HAS_K_TAIL = 0

#include "common/attention_row.clh"
#include "fused/channel_block.clh"

// The scores of n keys, `row` floats apart, and -inf after them.
LOCAL_INLINE void score_chunk(__local const float *q, __global const float *keys, long row, int n,
                              int width, float scale, __local float *scores)
{
    float block[VW];

    for (int i = 0; i < CHUNK; i += COLS_PER_PASS) {
        if (i < n)
            VSTORE(scale * dot_product_block(q, 0, 1, keys + i * row, STORED_FLOAT, row, n - i,
                                             width, COLS_PER_PASS * row),
                   block);
        for (int o = 0; o < COLS_PER_PASS; ++o)
            scores[i + o] = i + o < n ? block[o] : -INFINITY;
    }
}

// position: [1]; keys, values: [limit, m, channels]; head: channels of a head; sums: [head]
KERNEL void fused_step_cpu_attention(QKV_PARAMS, int head, int limit, float scale,
                                     __global const int *restrict position, __global float *keys,
                                     __global float *values, __local float *sums)
{
    SOFTMAX_LOCALS;
    const int t = clamp(position[0], 0, limit - 1);
    const long row = (long)m * channels;

    PROJECT_QKV;
    for (int i = 0; i < m; ++i)
        for (int c = 0; c < width; c += VW) {
            const long at = t * row + (long)i * channels + first + c;
            VSTORE(VLOAD(k + i * block_width + c), keys + at);
            VSTORE(VLOAD(v + i * block_width + c), values + at);
        }

    for (int i = 0; i < m; ++i)
        for (int c0 = 0; c0 < width; c0 += head) {
            const long at = (long)i * channels + first + c0;
            __local float *y = q + i * block_width + c0;
            struct online_softmax_state r = online_softmax_start(head, sums);
            for (int j0 = 0; j0 <= t; j0 += CHUNK) {
                const int n = min(CHUNK, t + 1 - j0);
                score_chunk(y, keys + j0 * row + at, row, n, head, scale, scores);
                r = online_softmax_update(r, scores, n, values + j0 * row + at, row, head, sums,
                                          tmp);
            }
            const float factor = r.total == 0.0f ? 0.0f : 1.0f / r.total;
            for (int c = 0; c < head; c += VW)
                VSTORE(VLOAD(sums + c) * factor, y + c);
        }
    store_partial(q, m, block_width, width, wo + first, channels, d_out, prefetch_rows_2, group,
                  out);
}
