// SPDX-License-Identifier: MIT
// Gradients of fused attention, GPU variant, first pass: what each query's row of weights comes
// from. Host side: lib/op/attention/attention_bwd.c
//
//   delta_i = g_i . y_i + sum_j p_ij c_ij
//
//   Work      one work-group of TX x TY work-items = BR queries of one head; grid (heads of all batch
//             entries, blocks)
//   Memory    as attention_gpu.cl, without values; writes 4 numbers a row
//   Numerics  float; a row that sees no key has 1 / total = 0
//
//   Macro     Meaning                                           Values
//   LS        work-group size                                   TX TY
//   VW        floats in a vector                                4
//   NE        float4s of a row's sums that a work-item holds    1
//   MASKING   what hides keys, beside the range                 0 .. 2

// A work-group of 128, whatever the widths.
#define TX 16
#define TY 8
#define DC 32
#include "attention/attention_gpu.clh"

// g . y of the work-item's rows, a part of each that the row's work-items add up.
static inline void dot_rows(__global const float *g, long g_t, __global const float *y, long y_t,
                            int count, int width, float part[4])
{
    for (int r = 0; r < 4; r++) {
        const int i = 4 * TILE_Y + r;
        part[r] = 0.0f;
        for (int e = TILE_X; e < width && i < count; e += TX)
            part[r] += g[i * g_t + e] * y[i * y_t + e];
    }
}

// A tile's scores become exponentials; maxima, totals and sums of p c follow.
LOCAL_INLINE void count_tile(float s[4][4], __global const float *c, int has_c, int n_keys, int i0,
                             int j0, float row_max[4], float total[4], float weighted[4],
                             __local float *red)
{
    float now[4];

#pragma unroll
    for (int r = 0; r < 4; r++)
        now[r] = max_v(max_v(s[r][0], s[r][1]), max_v(s[r][2], s[r][3]));
    reduce_rows(now, true, red, now);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        now[r] = max_v(row_max[r], now[r]);
        const float shift = now[r] == -INFINITY ? 0.0f : now[r];
        const float factor = exp_nonpos_f(row_max[r] - shift);
        row_max[r] = now[r];
        total[r] *= factor;
        weighted[r] *= factor;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const float e = exp_nonpos_f(s[r][n] - shift);
            total[r] += e;
            if (has_c && e > 0.0f)
                weighted[r] += e * c[(long)(i0 + 4 * TILE_Y + r) * n_keys + j0 + 4 * TILE_X + n];
        }
    }
}

// y, g: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e, likewise g.  c: [B, H, T,
// S].  rows: [B, H, T][4], a maximum, 1 / total, delta.
KERNEL void attention_bwd_gpu_rows(HEADS(q), HEADS(k), __global const float *restrict y, long y_b,
                                   long y_t, __global const float *restrict g, long g_b, long g_t,
                                   __global const float *restrict c, int has_c, VISIBILITY_PARAMS,
                                   __global float *restrict rows, int n_heads, int n_queries,
                                   int n_keys, int width, int value_width, float scale)
{
    __local float stage[STAGE], red[BR * (TX + 1)];
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(1) - 1 - (int)get_group_id(1)) * BR;
    const int count = min(BR, n_queries - i0);
    const struct visibility visible = VISIBILITY_OF(b);
    const struct rows queries = {HEAD_OF(q, b, h) + i0 * q_t, q_t, count};
    const int from = first_key(&visible, i0) / BC * BC, to = end_key(&visible, i0 + count - 1);
    float row_max[4], total[4], weighted[4], delta[4];

    c += (long)head * n_queries * n_keys;
    for (int r = 0; r < 4; r++) {
        row_max[r] = -INFINITY;
        total[r] = weighted[r] = 0.0f;
    }
    for (int j0 = from; j0 < to; j0 += BC) {
        const struct rows keys = {HEAD_OF(k, b, h) + j0 * k_t, k_t, n_keys - j0};
        float s[4][4];
#pragma unroll
        for (int n = 0; n < 16; n++)
            s[n / 4][n % 4] = 0.0f;
        multiply_rows(queries, keys, width, stage, s);
#pragma unroll
        for (int n = 0; n < 16; n++) {
            const int r = 4 * TILE_Y + n / 4, i = i0 + r, j = j0 + 4 * TILE_X + n % 4;
            float score = s[n / 4][n % 4] * scale;
#if MASKING == BY_LENGTHS
            if (r < count && j >= length_of(&visible, i))
                score = MASKED_SCORE;
#endif
            s[n / 4][n % 4] = r < count && is_visible(&visible, i, j) ? score : -INFINITY;
        }
        count_tile(s, c, has_c, n_keys, i0, j0, row_max, total, weighted, red);
    }
    dot_rows(g + b * g_b + i0 * g_t + (long)h * value_width, g_t,
             y + b * y_b + i0 * y_t + (long)h * value_width, y_t, count, value_width, delta);
    reduce_rows(total, false, red, total);
#pragma unroll
    for (int r = 0; r < 4; r++)
        delta[r] += total[r] == 0.0f ? 0.0f : weighted[r] / total[r];
    reduce_rows(delta, false, red, delta);
    if (TILE_X == 0)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int i = 4 * TILE_Y + r;
            const float4 row = (float4)(row_max[r] == -INFINITY ? 0.0f : row_max[r],
                                        total[r] == 0.0f ? 0.0f : 1.0f / total[r], delta[r], 0.0f);
            if (i < count)
                vstore4(row, (long)head * n_queries + i0 + i, rows);
        }
}
