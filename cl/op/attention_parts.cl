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

// position: [1]; keys, values: [limit, m, channels]; head: channels of a head; sums: [head]
KERNEL void attention_parts_fwd(MAPPED_PARAMS, int head, int limit, float scale,
                                __global const int *restrict position, __global float *keys,
                                __global float *values, __local float *sums)
{
    ROW_SPACE;
    const int t = clamp(position[0], 0, limit - 1);
    const long row = (long)m * channels;

    MAP_SLICE;
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
