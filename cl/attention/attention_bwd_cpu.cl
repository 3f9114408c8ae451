// SPDX-License-Identifier: MIT
// Gradients of fused attention, CPU variant.  Host side: lib/op/attention/attention_bwd.c
//
//   ds_ij = scale slope_ij p_ij (m_ij g_i . v_j + c_ij - delta_i),   delta_i = g_i . y_i + sum_j p_ij c_ij
//   dq_i = sum_j ds_ij k_j      dk_j = sum_i ds_ij q_i      dv_j = sum_i m_ij p_ij g_i
//
// g is the gradient of y, c the gradient of p if has_c, m the dropout mask or 1, slope the derivative
// of the soft cap or 1.
//
//   Work      one work-item = every n-th block of `block` queries of one head; grid (heads that share
//             their keys, key heads of all batch entries, n).  Loops over tiles of BC keys, skipping
//             those that no query sees
//   Memory    keys and values packed in tiles, and keys as rows, by attention_cpu_pack.cl; local memory:
//             queries and g as panels and as rows, p and ds [block][BC], dq, four floats per row.  Each
//             work-item writes its dk and dv [keys in tiles][pitch], which attention_bwd_sum.cl adds
//   Numerics  float; p from the rows' maxima and totals saved by attention_cpu.cl; a row that sees no key
//             has gradient 0, as have masked scores.  Sums in a fixed order

#include "attention/attention_bwd_cpu.clh"

// Keys of a panel of dk and dv.
#define PC 4

// sums [keys][pitch] += the transpose of factors [count][BC] * rows [count][pitch].
LOCAL_INLINE void add_columns(__global float *sums, int pitch, __local const float *factors,
                              __local const float *rows, int count, int keys)
{
    for (int e = 0; e < pitch; e += NE * VW)
        for (int j = 0; j < keys; j += PC) {
            __global float *o = sums + (long)j * pitch + e;
            __local const float *a = factors + j, *b = rows + e;
            FV c[PC][NE];
#pragma unroll
            for (int i = 0; i < PC; i++)
#pragma unroll
                for (int n = 0; n < NE; n++)
                    c[i][n] = VLOAD(o + i * pitch + n * VW);
            for (int r = 0; r < count; r++, a += BC, b += pitch) {
                FV bv[NE];
#pragma unroll
                for (int n = 0; n < NE; n++)
                    bv[n] = VLOAD(b + n * VW);
#pragma unroll
                for (int i = 0; i < PC; i++) {
                    const FV av = (FV)(a[i]);
#pragma unroll
                    for (int n = 0; n < NE; n++)
                        c[i][n] += av * bv[n];
                }
            }
#pragma unroll
            for (int i = 0; i < PC; i++)
#pragma unroll
                for (int n = 0; n < NE; n++)
                    VSTORE(c[i][n], o + i * pitch + n * VW);
        }
}

static inline void fill_zeros(__global float *to, long count)
{
    for (long i = 0; i < count; i += VW)
        VSTORE((FV)(0.0f), to + i);
}

// One head's tiles of keys and values, keys as rows, and sums.
struct head {
    __global const float *keys, *values, *key_rows;
    __global float *dk, *dv;
};

OUT_OF_LINE void add_gradients(const struct block *x, const struct gradient *y,
                               const struct visibility *v, const struct head *h, int from, int to,
                               int reach)
{
    for (int r = 0; r < x->padded; r++)
        for (int d = 0; d < x->sum_pitch; d += VW)
            VSTORE((FV)(0.0f), x->sums + r * x->sum_pitch + d);
    for (int j0 = from; j0 < to; j0 += BC) {
        const int keys = min(BC, to - j0);
        if (BY_LENGTHS && j0 >= reach && !masked_keys_count(x))
            break;
        if (!score_tile(x, v, h->keys, j0, keys, reach))
            continue;
        const bool has_ds = !BY_LENGTHS || j0 < reach;
        make_ds(x, y, v, h->values + (long)j0 * y->value_width, j0, keys, has_ds);
        add_columns(h->dv + (long)j0 * y->value_pitch, y->value_pitch, x->scores, y->g_rows,
                    x->count, keys);
        if (!has_ds)
            continue;
        add_values(x, y->ds, h->key_rows + (long)j0 * x->sum_pitch, x->sum_pitch, keys);
        add_columns(h->dk + (long)j0 * x->sum_pitch, x->sum_pitch, y->ds, y->query_rows, x->count,
                    keys);
    }
}

// y, g: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.  weights, c:
// [B, H, T, S].  rows: [B, H, T], a maximum and 1 / total.  packed: keys, from values_at on values,
// from rows_at on keys as rows.  dq: [B, H, T, width].
// sums: dk [heads][work-items of a head][keys in tiles][key_pitch] from dk_at on, dv likewise from dv_at.
KERNEL void attention_bwd_cpu(HEADS(q), __global const float *restrict y, long y_b, long y_t,
                              __global const float *restrict g,
                              __global const float *restrict weights,
                              __global const float *restrict c, int has_c,
                              __global const float *restrict rows,
                              __global const float *restrict packed, long values_at, long rows_at,
                              __global float *restrict dq, __global float *restrict sums,
                              long dk_at, long dv_at, int key_pitch, int value_pitch, int block,
                              __local float *local_space, ATTENTION_PARAMS)
{
    const int kv_head = get_group_id(1);
    const int head = kv_head * (int)get_num_groups(0) + (int)get_group_id(0);
    const int b = head / n_heads, h = head - b * n_heads;
    const int part = get_group_id(2), parts = get_num_groups(2);
    const int padded_block = (block + MR - 1) / MR * MR;
    const struct visibility visible = VISIBILITY_OF(b);
    const long tile_keys = (n_keys + BC - 1) / BC * BC;
    const long own = ((long)head * parts + part) * tile_keys;
    const struct head tiles = {packed + kv_head * tile_keys * width,
                               packed + values_at + kv_head * tile_keys * value_width,
                               packed + rows_at + (long)kv_head * n_keys * key_pitch,
                               sums + dk_at + own * key_pitch, sums + dv_at + own * value_pitch};
#if BIAS
    struct block x = {.bias = {BIAS_TABLE_OF(b, h) BIAS_SLOPE_OF(h)}};
#else
    struct block x;
#endif
    struct gradient z;

    x.width = width;
    x.sum_pitch = key_pitch;
    x.scale = scale;
    x.softcap = softcap;
    x.queries = local_space;
    x.scores = x.queries + padded_block * width;
    x.sums = x.scores + padded_block * BC;
    x.row_max = x.sums + padded_block * key_pitch;
    x.total = x.row_max + padded_block;
    z.value_width = value_width;
    z.value_pitch = value_pitch;
    z.n_keys = n_keys;
    z.has_c = has_c;
    z.delta = x.total + padded_block;
    z.ds = z.delta + padded_block;
    z.g = z.ds + padded_block * BC;
    z.query_rows = z.g + padded_block * value_width;
    z.g_rows = z.query_rows + padded_block * key_pitch;

#if DROPOUT
    const struct weight_mask dropped = WEIGHT_MASK_OF(head);
    z.dropped = dropped;
#endif

    fill_zeros(tiles.dk, tile_keys * key_pitch);
    fill_zeros(tiles.dv, tile_keys * value_pitch);
    for (int i0 = part * block; i0 < n_queries; i0 += parts * block) {
        __global const float *query = HEAD_OF(q, b, h) + i0 * q_t;
        __global const float *gradient = g + b * y_b + i0 * y_t + (long)h * value_width;
        __global const float *result = y + b * y_b + i0 * y_t + (long)h * value_width;
        x.i0 = i0;
        x.count = min(block, n_queries - i0);
        x.padded = (x.count + MR - 1) / MR * MR;
        const long row0 = (long)head * n_queries + i0;
        z.c = c + row0 * n_keys;
        const int from = first_key(&visible, i0) / BC * BC;
        const int to = end_key(&visible, i0 + x.count - 1);
        const int reach = BY_LENGTHS ? longest(&visible, i0, i0 + x.count) : n_keys;

        pack_rows(&x, query, q_t, width, x.queries);
        pack_rows(&x, gradient, y_t, value_width, z.g);
        copy_rows(query, q_t, x.count, width, z.query_rows, key_pitch);
        copy_rows(gradient, y_t, x.count, value_width, z.g_rows, value_pitch);
        load_rows(&x, &z, rows + 2 * row0, weights + row0 * n_keys, gradient, result, y_t);
        add_gradients(&x, &z, &visible, &tiles, from, to, reach);
        for (int r = 0; r < x.count; r++)
            for (int d = 0; d < width; d += VW)
                store_some(VLOAD(x.sums + r * key_pitch + d), dq + (row0 + r) * width + d,
                           width - d);
    }
}
