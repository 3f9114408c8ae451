// SPDX-License-Identifier: MIT
// One position of a layer of multi-head attention, from the layer norm to the output map, its
// result in parts, CPU form.  Host side: lib/op/attention_parts.c
//
//   x' = x + (before_bias + sum_s before[s]),  z = LN(x')             joined_rows.clh
//   q, k, v = z Wq_g^T + bq_g, z Wk_g^T + bk_g, z Wv_g^T + bv_g       a slice: some of the heads
//   parts[g] = attention of q over the keys so far, Wo_g^T
//
//   Work      one group = one slice of `slice` channels, whole heads, for all rows: heads do not
//   mix
//             before the output map, so that all of it is one launch.  Each group joins and
//             normalises all rows for itself: less than a launch takes
//   Memory    reads each weight once; stores this position's keys and values in the caches
//             [limit][m][channels], reads all up to it; rows and a slice's q, k and v in local
//             memory
//   Numerics  float; products as in few_rows.clh, online softmax (attention_row.clh); the position
//             is clamped to the caches
//
//   Macro      Meaning                                              Values
//   LS         work-items in a group                                1
//   VW         vector width, a divisor of a head's width            4 | 8 | 16
//   OUT MOST_ROWS TAIL AHEAD   as in few_rows.clh, TAIL = 0

#include "common/attention_row.clh"
#include "common/slices.clh"

// The scores of n keys, `row` floats apart, and -inf behind them.
LOCAL_INLINE void score_chunk(__local const float *q, __global const float *keys, long row, int n,
                              int width, float scale, __local float *scores)
{
    float block[VW];

    for (int i = 0; i < CHUNK; i += OUT) {
        if (i < n)
            VSTORE(scale * products(q, 0, 1, keys + i * row, row, n - i, width, OUT * row), block);
        for (int o = 0; o < OUT; ++o)
            scores[i + o] = i + o < n ? block[o] : -INFINITY;
    }
}

// wq, wk, wv: [channels, d]; wo: [d_out, channels]; has_bias: bits 0, 1, 2 for bq, bk, bv
// position: [1]; keys, values: [limit, m, channels]; head: channels of a head
// out: [groups, m, d_out]; rows: [m, d]; q, k, v: [m, slice] each; sums: [head]
KERNEL void
attention_parts_fwd(JOINED_PARAMS, __global float *restrict x_whole, int channels, int slice,
                    int d_out, int ahead_1, int ahead_2, int has_bias,
                    __global const float *restrict wq, __global const float *restrict bq,
                    __global const float *restrict wk, __global const float *restrict bk,
                    __global const float *restrict wv, __global const float *restrict bv,
                    __global const float *restrict wo, __global float *restrict out,
                    __local float *restrict rows, __local float *restrict q,
                    __local float *restrict k, __local float *restrict v, int head, int limit,
                    float scale, __global const int *restrict position, __global float *keys,
                    __global float *values, __local float *sums)
{
    ROW_SPACE;
    const int group = (int)get_group_id(0), first = group * slice;
    const int width = min(slice, channels - first), t = clamp(position[0], 0, limit - 1);
    const long row = (long)m * channels;

    joined_rows(m, d, n_parts, has_parts_bias, x, parts, parts_bias, norm_weight, norm_bias, eps,
                x_whole, rows);
    map_slice(rows, m, d, wq, bq, has_bias & 1, ahead_1, first, width, slice, q);
    map_slice(rows, m, d, wk, bk, has_bias & 2, ahead_1, first, width, slice, k);
    map_slice(rows, m, d, wv, bv, has_bias & 4, ahead_1, first, width, slice, v);

    for (int i = 0; i < m; ++i)
        for (int c = 0; c < width; c += VW) {
            const long at = t * row + (long)i * channels + first + c;
            VSTORE(VLOAD(k + i * slice + c), keys + at);
            VSTORE(VLOAD(v + i * slice + c), values + at);
        }

    for (int i = 0; i < m; ++i)
        for (int c0 = 0; c0 < width; c0 += head) {
            const long at = (long)i * channels + first + c0;
            __local float *y = q + i * slice + c0;
            struct running r = row_start(head, sums);
            for (int j0 = 0; j0 <= t; j0 += CHUNK) {
                const int n = min(CHUNK, t + 1 - j0);
                score_chunk(y, keys + j0 * row + at, row, n, head, scale, scores);
                r = row_take(r, scores, n, values + j0 * row + at, row, head, sums, tmp);
            }
            const float factor = r.total == 0.0f ? 0.0f : 1.0f / r.total;
            for (int c = 0; c < head; c += VW)
                VSTORE(VLOAD(sums + c) * factor, y + c);
        }
    addend_of_slice(q, m, slice, width, wo + first, channels, d_out, ahead_2, group, out);
}
