// SPDX-License-Identifier: MIT
// Fused attention with an online softmax, CPU variant.  Host side: lib/op/attention/attention.c
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over visible j of scale * (q_i . k_j)
//
// m is the dropout mask, or 1; stored weights are p.
//
//   Work      one work-item = `block` queries of one head; grid (blocks, heads that share their keys,
//             key heads of all batch entries), so that a head's keys and values stay in cache; last
//             block first, since with a causal mask it has the most keys.  Per tile of BC keys: scores
//             in panels of MR x NS vectors, online softmax, products with the values in panels of
//             PR x NE vectors.  Tiles that no query sees are skipped
//   Memory    keys packed by attention_cpu_pack.cl, values packed or in place; local memory: `queries`
//             [block / MR][width][MR], `scores` [block][BC], `sums` [block][value_pitch] and `rows`,
//             maxima [block] and totals per lane [block][VW]
//   Numerics  float; running maximum per row, raised only when a score exceeds it by SLACK, so rows are
//             rarely rescaled and exponentials are at most e^SLACK; a row that sees no key gives 0.
//             WEIGHTS recomputes the scores, bit for bit
//
//   Macro    Meaning          Values
//   WEIGHTS  p is stored too  0 | 1

#include "attention/attention_cpu.clh"
#include "common/dropout_row.clh"

#define SLACK 8.0f

#ifndef WEIGHTS
#error "WEIGHTS: p is stored too"
#endif

// e^x, 0 below -88, NaN kept; as powers of two in 12 instead of 15 operations.  Relative error
// 1.5e-7 + 2e-8 |x|, larger only for small results.
static inline FV exp_score_v(FV x)
{
    const FV t = max_v((FV)(-88.029f), x); // 2^-127, which the shift makes 0
    const FV k = t * LOG2_E + ROUND_POWER;
    const FV r = t * LOG2_E - (k - ROUND_POWER);
    FV q = r * 0.00132647f + 0.00967151f;
    q = q * r + 0.05550734f;
    q = q * r + 0.24022242f;
    q = q * r + 0.69314698f;
    q = q * r + 1.0f;
    return q * AS_FV(AS_IV(k) << 23);
}

// Rescales row r to the maximum `now`.
static inline void raise_row(const struct block *x, int r, float now)
{
    const float factor = exp_nonpos_f(x->row_max[r] - now);

    x->row_max[r] = now;
    VSTORE(VLOAD(x->total + r * VW) * factor, x->total + r * VW);
    for (int e = 0; e < x->sum_pitch; e += VW) {
        __local float *o = x->sums + r * x->sum_pitch + e;
        VSTORE(VLOAD(o) * factor, o);
    }
}

// Absorbs a tile in row r, turning its scores into exponentials.  The branch is predictable, and unless
// it is taken no exponential waits for the horizontal maximum.
static inline void absorb_row(const struct block *x, int r, int columns)
{
    __local float *s = x->scores + r * BC;
    FV row_max_v[NS], sum_v[NS];

#pragma unroll
    for (int n = 0; n < NS; n++)
        row_max_v[n] = VLOAD(s + n * VW);
    for (int c = PANEL; c < columns; c += PANEL)
#pragma unroll
        for (int n = 0; n < NS; n++)
            row_max_v[n] = max_v(VLOAD(s + c + n * VW), row_max_v[n]);
    const float tile_max = horizontal_max(max_v(row_max_v[0], row_max_v[NS - 1]));
    if (tile_max > x->row_max[r] + SLACK)
        raise_row(x, r, tile_max);
    const float base = x->row_max[r] == -INFINITY ? 0.0f : x->row_max[r];

#pragma unroll
    for (int n = 0; n < NS; n++)
        sum_v[n] = (FV)(0.0f);
    for (int c = 0; c < columns; c += PANEL)
#pragma unroll
        for (int n = 0; n < NS; n++) {
            const FV e = exp_score_v(VLOAD(s + c + n * VW) - base);
            VSTORE(e, s + c + n * VW);
            sum_v[n] += e;
        }
#if NS == 2
    sum_v[0] += sum_v[1];
#endif
    VSTORE(VLOAD(x->total + r * VW) + sum_v[0], x->total + r * VW);
}

static inline void start_rows(const struct block *x)
{
    for (int r = 0; r < x->padded; r++) {
        x->row_max[r] = -INFINITY;
        VSTORE((FV)(0.0f), x->total + r * VW);
        for (int e = 0; e < x->sum_pitch; e += VW)
            VSTORE((FV)(0.0f), x->sums + r * x->sum_pitch + e);
    }
}

// The reference and the factor of a row's exponentials; both 0 if it sees no key.
static inline float2 row_shift_and_factor(const struct block *x, int r)
{
    const float total = horizontal_sum(VLOAD(x->total + r * VW));
    return (float2)(x->row_max[r] == -INFINITY ? 0.0f : x->row_max[r],
                    total == 0.0f ? 0.0f : 1.0f / total);
}

static inline void store_rows(const struct block *x, __global float *y, long y_t, int value_width)
{
    for (int r = 0; r < x->count; r++, y += y_t) {
        const float factor = row_shift_and_factor(x, r).y;
        __local const float *o = x->sums + r * x->sum_pitch;
        int e = 0;
        for (; e + VW <= value_width; e += VW)
            VSTORE(VLOAD(o + e) * factor, y + e);
        if (e < value_width)
            store_part(VLOAD(o + e) * factor, y + e, value_width - e);
    }
}

#if WEIGHTS
// Stores a tile's columns in rows of n_keys weights.
static inline void store_weights(const struct block *x, bool seen, __global float *weights,
                                 int n_keys, int keys)
{
    for (int r = 0; r < x->count; r++, weights += n_keys) {
        const float2 row = row_shift_and_factor(x, r);
        __local const float *s = x->scores + r * BC;
        for (int c = 0; c < keys; c += VW) {
            const FV p = seen ? exp_nonpos_v(VLOAD(s + c) - row.x) * row.y : (FV)(0.0f);
            if (c + VW <= keys)
                VSTORE(p, weights + c);
            else
                store_part(p, weights + c, keys - c);
        }
    }
}
#endif

// y: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.  weights: [B, H, T, S].
// saved_rows, if save_rows: [B, H, T], a maximum, up to SLACK too low, and 1 / total.
KERNEL void attention_cpu_fwd(HEADS(q), __global const float *restrict packed_k, HEADS(v),
                              __global float *restrict y, long y_b, long y_t,
                              __global float *restrict weights, __global float *restrict saved_rows,
                              int save_rows, int block, __local float *queries, ATTENTION_PARAMS)
{
    const int value_pitch = (value_width + NE * VW - 1) / (NE * VW) * (NE * VW);
    // One local argument, and kv_group from the grid: the embedded profile guarantees only 256 bytes of arguments.
    __local float *const scores = queries + block * width, *const sums = scores + block * BC;
    __local float *const rows = sums + block * value_pitch;
    const int kv_group = get_num_groups(1), kv_head = get_group_id(2);
    const int head = kv_head * kv_group + (int)get_group_id(1);
    const int b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(0) - 1 - (int)get_group_id(0)) * block;
    const int count = min(block, n_queries - i0);
    const struct visibility visible = VISIBILITY_OF(b);
    const struct block x = {i0,      count,       (count + MR - 1) / MR * MR,
                            width,   value_pitch, scale,
                            softcap, queries,     scores,
                            sums,    rows,        rows + block BIAS_OF(b, h)};
    const int from = first_key(&visible, i0) / BC * BC;
    const int to = end_key(&visible, i0 + count - 1);
    const int reach = BY_LENGTHS ? longest(&visible, i0, i0 + count) : n_keys;
    const long tiles = (n_keys + BC - 1) / BC;
    __global const float *keys_of_head = packed_k + kv_head * tiles * BC * width;
    __global const float *values_of_head = HEAD_OF(v, b, h / kv_group);

#if DROPOUT
    const struct weight_mask dropped = WEIGHT_MASK_OF(head);
#endif

    pack_rows(&x, HEAD_OF(q, b, h) + i0 * q_t, q_t, width, queries);
    start_rows(&x);
    for (int j0 = from; j0 < to; j0 += BC) {
        const int keys = min(BC, to - j0);
        if (BY_LENGTHS && j0 >= reach && !masked_keys_count(&x))
            break;
        if (!score_tile(&x, &visible, keys_of_head, j0, keys, reach))
            continue;
        for (int r = 0; r < count; r++)
            absorb_row(&x, r, (keys + PANEL - 1) / PANEL * PANEL);
#if DROPOUT
        for (int r = 0; r < count; r++)
            drop_scores(&dropped.d, mask_block(&dropped, i0 + r, j0), scores + r * BC, keys);
#endif
        add_values(&x, scores, values_of_head + j0 * v_t, v_t, keys);
    }
    store_rows(&x, y + b * y_b + i0 * y_t + (long)h * value_width, y_t, value_width);
    for (int r = 0; r < count && save_rows; r++)
        vstore2(row_shift_and_factor(&x, r), (long)head * n_queries + i0 + r, saved_rows);

#if WEIGHTS
    for (int j0 = 0; j0 < n_keys; j0 += BC) {
        const int keys = min(BC, n_keys - j0);
        const bool seen = score_tile(&x, &visible, keys_of_head, j0, keys, reach);
        store_weights(&x, seen, weights + ((long)head * n_queries + i0) * n_keys + j0, n_keys,
                      keys);
    }
#endif
}
