// SPDX-License-Identifier: MIT
// Fused attention with an online softmax, CPU form.  Host side: lib/op/attention.c
//
//   y_i = sum_j p_ij v_j,   p_ij = softmax over visible j of scale * (q_i . k_j)
//
//   Work      one work-item = `block` queries of one head; grid (heads of all batch entries,
//             blocks), last block first since a causal one has the most keys.  A tile of BC keys at
//             a time: scores in panels of MR x NS vectors, online softmax, products with the values
//             in panels of PR x NE vectors.  Tiles nobody sees are skipped
//   Memory    keys packed by attention_pack.cl, values packed or in place; in local memory
//             `queries` [block / MR][width][MR], `scores` [block][BC], `sums` [block][value_pitch]
//             and `rows` [2][block]
//   Numerics  float; running maximum per row, so that only exponentials of numbers <= 0 are taken;
//             a row that sees no key gives 0.  With WEIGHTS the scores are computed again, the same
//             bit for bit
//
//   Macro     Meaning                                           Values
//   LS        work-items in a group                             1
//   VW        floats in a vector                                4 | 8 | 16
//   BC        keys of a tile, a multiple of NS VW               8 .. 128
//   NS        vectors across a panel of scores                  1 .. 2
//   MR        rows of a panel of scores, a multiple of PR       6 | 12
//   NE        vectors across a panel of sums                    1 .. 4
//   MASKING   what hides keys, beside the range                 0 .. 2
//   WEIGHTS   p is stored too                                   0 | 1

#include "common/attention.clh"

#ifndef BC
#error "BC: keys of a tile"
#endif
#ifndef NS
#error "NS: vectors across a panel of scores"
#endif
#ifndef MR
#error "MR: rows of a panel of scores"
#endif
#ifndef NE
#error "NE: vectors across a panel of sums"
#endif
#ifndef WEIGHTS
#error "WEIGHTS: p is stored too"
#endif

#define PR 6
#define PANEL (NS * VW)
#if VW == 1 || BC % PANEL != 0 || MR % PR != 0
#error "VW, BC, NS, MR do not go together"
#endif

// One block of queries: `count` of them from i0, `padded` to whole panels.
struct block {
    int i0, count, padded, width, value_pitch;
    float scale;
    __local float *queries, *scores, *sums, *top, *total;
};

// The last query stands in for missing ones.
static inline void pack_queries(const struct block *x, __global const float *q, long q_t)
{
    __local float *to = x->queries;

    for (int g = 0; g < x->padded; g += MR, to += MR * x->width)
        for (int r = 0; r < MR; r++) {
            __global const float *row = q + min(g + r, x->count - 1) * q_t;
            for (int d = 0; d < x->width; d++)
                to[d * MR + r] = row[d];
        }
}

static inline void multiply_keys(const struct block *x, __global const float *keys, int columns)
{
    for (int j = 0; j < columns; j += PANEL)
        for (int g = 0; g < x->padded; g += MR) {
            __local const float *a = x->queries + g * x->width;
            __global const float *b = keys + j;
            FV c[MR][NS];
#pragma unroll
            for (int r = 0; r < MR; r++)
#pragma unroll
                for (int n = 0; n < NS; n++)
                    c[r][n] = (FV)(0.0f);
            for (int d = 0; d < x->width; d++, a += MR, b += BC) {
                FV bv[NS];
#pragma unroll
                for (int n = 0; n < NS; n++)
                    bv[n] = VLOAD(b + n * VW);
#pragma unroll
                for (int r = 0; r < MR; r++) {
                    const FV av = (FV)(a[r]);
#pragma unroll
                    for (int n = 0; n < NS; n++)
                        c[r][n] += av * bv[n];
                }
            }
#pragma unroll
            for (int r = 0; r < MR; r++)
#pragma unroll
                for (int n = 0; n < NS; n++)
                    VSTORE(c[r][n] * x->scale, x->scores + (g + r) * BC + j + n * VW);
        }
}

#if MASKING == BY_MASK
#define SEEN(p) TO_IV(CAT(vload, VW)(0, p))

static inline bool mask_shows_any(const struct visibility *v, const struct block *x, int j0,
                                  int keys)
{
    for (int r = 0; r < (v->mask_t ? x->count : 1); r++) {
        __global const uchar *m = v->mask + (x->i0 + r) * v->mask_t + (long)j0 * v->mask_s;
        int c = 0;
        if (v->mask_s == 1)
            for (; c + VW <= keys; c += VW)
                if (any(SEEN(m + c) != 0))
                    return true;
        for (; c < keys; c++)
            if (m[(long)c * v->mask_s])
                return true;
    }
    return false;
}

static inline void hide_by_mask(const struct visibility *v, const struct block *x, int j0, int keys)
{
    for (int r = 0; r < x->count; r++) {
        __global const uchar *m = v->mask + (x->i0 + r) * v->mask_t + (long)j0 * v->mask_s;
        __local float *s = x->scores + r * BC;
        int c = 0;
        if (v->mask_s == 1)
            for (; c + VW <= keys; c += VW)
                VSTORE(SEEN(m + c) != 0 ? VLOAD(s + c) : (FV)(-INFINITY), s + c);
        for (; c < keys; c++)
            if (!m[(long)c * v->mask_s])
                s[c] = -INFINITY;
    }
}
#endif

// Columns outside [from, to) become `value`.
LOCAL_INLINE void fill_outside(__local float *s, int columns, int from, int to, float value)
{
    for (int c = 0; c < columns; c += VW) {
        if (c >= from && c + VW <= to)
            continue;
        const IV at = LANES + c;
        VSTORE(at >= from && at < to ? VLOAD(s + c) : (FV)(value), s + c);
    }
}

// Scores of keys j0 .. j0 + keys - 1, -inf in columns that a query does not see.  False when no
// query sees any of them; the scores are then undefined.
static inline bool score_tile(const struct block *x, const struct visibility *v,
                              __global const float *packed, int j0, int keys, int reach)
{
    const int columns = (keys + PANEL - 1) / PANEL * PANEL;
    const int last = x->i0 + x->count - 1;

    if (j0 >= end_key(v, last) || j0 + keys <= first_key(v, x->i0))
        return false;
#if MASKING == BY_MASK
    if (!mask_shows_any(v, x, j0, keys))
        return false;
#endif
    // What no length reaches has MASKED_SCORE everywhere: its keys were not even packed.
    if (MASKING != BY_LENGTHS || j0 < reach)
        multiply_keys(x, packed + (long)j0 * x->width, columns);
#if MASKING == BY_LENGTHS
    for (int r = 0; r < x->count; r++)
        fill_outside(x->scores + r * BC, columns, 0, length_of(v, x->i0 + r) - j0, MASKED_SCORE);
#elif MASKING == BY_MASK
    hide_by_mask(v, x, j0, keys);
#endif
    if (keys < columns || j0 < first_key(v, last) || j0 + keys > end_key(v, x->i0))
        for (int r = 0; r < x->count; r++)
            fill_outside(x->scores + r * BC, columns, first_key(v, x->i0 + r) - j0,
                         min(keys, end_key(v, x->i0 + r) - j0), -INFINITY);
    return true;
}

// Row r takes a tile in: its scores become exponentials, what it had so far is scaled to the new
// maximum.
static inline void absorb_row(const struct block *x, int r, int columns)
{
    __local float *s = x->scores + r * BC;
    FV top_v[NS], sum_v[NS];

#pragma unroll
    for (int n = 0; n < NS; n++)
        top_v[n] = VLOAD(s + n * VW);
    for (int c = PANEL; c < columns; c += PANEL)
#pragma unroll
        for (int n = 0; n < NS; n++)
            top_v[n] = max_v(VLOAD(s + c + n * VW), top_v[n]);
    const float before = x->top[r];
    const float now = max_v(before, max_lanes(max_v(top_v[0], top_v[NS - 1])));
    const float shift = now == -INFINITY ? 0.0f : now;

#pragma unroll
    for (int n = 0; n < NS; n++)
        sum_v[n] = (FV)(0.0f);
    for (int c = 0; c < columns; c += PANEL)
#pragma unroll
        for (int n = 0; n < NS; n++) {
            const FV e = exp_nonpos_v(VLOAD(s + c + n * VW) - shift);
            VSTORE(e, s + c + n * VW);
            sum_v[n] += e;
        }
#if NS == 2
    sum_v[0] += sum_v[1];
#endif
    const float sum = sum_lanes(sum_v[0]);
    if (now == before) {
        x->total[r] += sum;
        return;
    }
    const float factor = exp_nonpos_f(before - shift);
    x->top[r] = now;
    x->total[r] = x->total[r] * factor + sum;
    for (int e = 0; e < x->value_pitch; e += VW) {
        __local float *o = x->sums + r * x->value_pitch + e;
        VSTORE(VLOAD(o) * factor, o);
    }
}

static inline void add_values(const struct block *x, __global const float *v, long v_t, int keys)
{
    const int pitch = x->value_pitch;

    for (int e = 0; e < pitch; e += NE * VW)
        for (int g = 0; g < x->count; g += PR) {
            __local float *o = x->sums + g * pitch + e;
            __local const float *a = x->scores + g * BC;
            __global const float *b = v + e;
            FV c[PR][NE];
#pragma unroll
            for (int r = 0; r < PR; r++)
#pragma unroll
                for (int n = 0; n < NE; n++)
                    c[r][n] = VLOAD(o + r * pitch + n * VW);
            for (int j = 0; j < keys; j++, a++, b += v_t) {
                FV bv[NE];
#pragma unroll
                for (int n = 0; n < NE; n++)
                    bv[n] = VLOAD(b + n * VW);
#pragma unroll
                for (int r = 0; r < PR; r++) {
                    const FV av = (FV)(a[r * BC]);
#pragma unroll
                    for (int n = 0; n < NE; n++)
                        c[r][n] += av * bv[n];
                }
            }
#pragma unroll
            for (int r = 0; r < PR; r++)
#pragma unroll
                for (int n = 0; n < NE; n++)
                    VSTORE(c[r][n], o + r * pitch + n * VW);
        }
}

// Keys that no length reaches count for rows whose scores are that low, or that have none yet.
static inline bool masked_keys_count(const struct block *x)
{
    for (int r = 0; r < x->count; r++)
        if (x->top[r] < MASKED_SCORE + COMPETING)
            return true;
    return false;
}

static inline void start_rows(const struct block *x)
{
    for (int r = 0; r < x->padded; r++) {
        x->top[r] = -INFINITY;
        x->total[r] = 0.0f;
        for (int e = 0; e < x->value_pitch; e += VW)
            VSTORE((FV)(0.0f), x->sums + r * x->value_pitch + e);
    }
}

static inline void store_rows(const struct block *x, __global float *y, long y_t, int value_width)
{
    for (int r = 0; r < x->count; r++, y += y_t) {
        const float factor = x->total[r] == 0.0f ? 0.0f : 1.0f / x->total[r];
        __local const float *o = x->sums + r * x->value_pitch;
        int e = 0;
        for (; e + VW <= value_width; e += VW)
            VSTORE(VLOAD(o + e) * factor, y + e);
        if (e < value_width)
            store_part(VLOAD(o + e) * factor, y + e, value_width - e);
    }
}

#if WEIGHTS
// The columns of a tile in rows of n_keys weights.
static inline void store_weights(const struct block *x, bool seen, __global float *weights,
                                 int n_keys, int keys)
{
    for (int r = 0; r < x->count; r++, weights += n_keys) {
        const float shift = x->top[r] == -INFINITY ? 0.0f : x->top[r];
        const float factor = x->total[r] == 0.0f ? 0.0f : 1.0f / x->total[r];
        __local const float *s = x->scores + r * BC;
        for (int c = 0; c < keys; c += VW) {
            const FV p = seen ? exp_nonpos_v(VLOAD(s + c) - shift) * factor : (FV)(0.0f);
            if (c + VW <= keys)
                VSTORE(p, weights + c);
            else
                store_part(p, weights + c, keys - c);
        }
    }
}
#endif

// y: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.  weights: [B, H, T, S].
KERNEL void attention_fwd(HEADS(q), __global const float *restrict packed_k, HEADS(v),
                          VISIBILITY_PARAMS, __global float *restrict y, long y_b, long y_t,
                          __global float *restrict weights, int n_heads, int n_queries, int n_keys,
                          int width, int value_width, int value_pitch, float scale, int block,
                          __local float *queries, __local float *scores, __local float *sums,
                          __local float *rows)
{
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(1) - 1 - (int)get_group_id(1)) * block;
    const int count = min(block, n_queries - i0);
    const struct visibility visible = VISIBILITY_OF(b);
    const struct block x = {i0, count, (count + MR - 1) / MR * MR, width, value_pitch,
                            scale, queries, scores, sums, rows, rows + block};
    const int from = first_key(&visible, i0) / BC * BC;
    const int to = end_key(&visible, i0 + count - 1);
    const int reach = MASKING == BY_LENGTHS ? longest(&visible, i0, i0 + count) : n_keys;
    const long tiles = (n_keys + BC - 1) / BC;
    __global const float *keys_of_head = packed_k + head * tiles * BC * width;
    __global const float *values_of_head = HEAD_OF(v, b, h);

    pack_queries(&x, HEAD_OF(q, b, h) + i0 * q_t, q_t);
    start_rows(&x);
    for (int j0 = from; j0 < to; j0 += BC) {
        const int keys = min(BC, to - j0);
        if (MASKING == BY_LENGTHS && j0 >= reach && !masked_keys_count(&x))
            break;
        if (!score_tile(&x, &visible, keys_of_head, j0, keys, reach))
            continue;
        for (int r = 0; r < count; r++)
            absorb_row(&x, r, (keys + PANEL - 1) / PANEL * PANEL);
        add_values(&x, values_of_head + j0 * v_t, v_t, keys);
    }
    store_rows(&x, y + b * y_b + i0 * y_t + (long)h * value_width, y_t, value_width);

#if WEIGHTS
    for (int j0 = 0; j0 < n_keys; j0 += BC) {
        const int keys = min(BC, n_keys - j0);
        const bool seen = score_tile(&x, &visible, keys_of_head, j0, keys, reach);
        store_weights(&x, seen, weights + ((long)head * n_queries + i0) * n_keys + j0, n_keys,
                      keys);
    }
#endif
}
