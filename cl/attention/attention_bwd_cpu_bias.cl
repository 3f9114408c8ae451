// SPDX-License-Identifier: MIT
// The gradient of attention's bias, CPU variant.  Host side: lib/op/attention/attention_bwd_bias.c
//
//   dbias_ij = sum over the scores that share the element of p_ij (m_ij g_i . v_j + c_ij - delta_i)
//
//   Work      one work-item = BC keys of a block of the table's queries, or of its one row; grid (tiles, blocks, batch
//             entries and heads of the table).  Loops over the batch entries, heads and queries that share its elements
//   Memory    keys and values packed in tiles by attention_cpu_pack.cl; local memory: queries and g as panels, p and ds
//             [block][BC], three floats per row
//   Numerics  float; p from the same scores as the forward pass; sums in the order of batch entries, heads and queries

#define OF_BIAS
#include "attention/attention_bwd_cpu.clh"

// Adds a tile's ds to rows of the gradient, or to its one row.
LOCAL_INLINE void add_rows(const struct block *x, const struct gradient *y, int keys, bool one_row,
                           __global float *to)
{
    for (int r = 0; r < x->count; r++) {
        __local const float *ds = y->ds + r * BC;
        __global float *row = to + (one_row ? 0 : (long)r * y->n_keys);
        for (int c = 0; c < keys; c += VW)
            store_some(load_some(row + c, keys - c, 0.0f) + VLOAD(ds + c), row + c, keys - c);
    }
}

// y, g, weights, c, rows: as attention_bwd_cpu.cl.  packed: keys, from values_at on values.  dbias: as the table.
KERNEL void attention_bwd_cpu_bias(HEADS(q), __global const float *restrict y, long y_b, long y_t,
                                   __global const float *restrict g,
                                   __global const float *restrict weights,
                                   __global const float *restrict c, int has_c,
                                   __global const float *restrict rows,
                                   __global const float *restrict packed, long values_at,
                                   __global float *restrict dbias, int n_batch, int kv_group,
                                   int block, __local float *queries, ATTENTION_PARAMS)
{
    const int j0 = (int)get_group_id(0) * BC, keys = min(BC, n_keys - j0);
    const int first = axes & 4 ? (int)get_group_id(1) * block : 0;
    const int end = axes & 4 ? min(n_queries, first + block) : n_queries;
    const int entry = get_group_id(2), table_heads = axes & 2 ? n_heads : 1;
    const int padded = (block + MR - 1) / MR * MR, kv_heads = n_heads / kv_group;
    const long tile_keys = (n_keys + BC - 1) / BC * BC;
    const int b0 = axes & 1 ? entry / table_heads : 0, end_b = axes & 1 ? b0 + 1 : n_batch;
    const int h0 = axes & 2 ? entry % table_heads : 0, end_h = axes & 2 ? h0 + 1 : n_heads;
    __global float *to = dbias + ((long)entry * (axes & 4 ? n_queries : 1) + first) * n_keys + j0;

    for (int i = 0; i < (axes & 4 ? end - first : 1); i++)
        for (int k = 0; k < keys; k++)
            to[(long)i * n_keys + k] = 0.0f;
    for (int b = b0; b < end_b; b++)
        for (int h = h0; h < end_h; h++)
            for (int i0 = first; i0 < end; i0 += block) {
                const int count = min(block, end - i0), head = b * n_heads + h;
                const int kv_head = b * kv_heads + h / kv_group;
                const struct visibility visible = VISIBILITY_OF(b);
                __local float *scores = queries + padded * width, *ds = scores + padded * BC;
                __local float *g_panels = ds + padded * BC;
                __local float *row_max = g_panels + padded * value_width;
                const struct block x = {i0,      count,   (count + MR - 1) / MR * MR,
                                        width,   0,       scale,
                                        softcap, queries, scores,
                                        0,       row_max, row_max + padded BIAS_OF(b, h)};
                const long row0 = (long)head * n_queries + i0;
                struct gradient z;
                z.value_width = value_width;
                z.n_keys = n_keys;
                z.has_c = has_c;
                z.g = g_panels;
                z.ds = ds;
                z.delta = row_max + 2 * padded;
                z.c = c + row0 * n_keys;
#if DROPOUT
                const struct weight_mask dropped = WEIGHT_MASK_OF(head);
                z.dropped = dropped;
#endif
                __global const float *gradient = g + b * y_b + i0 * y_t + (long)h * value_width;
                __global const float *result = y + b * y_b + i0 * y_t + (long)h * value_width;
                const int reach = BY_LENGTHS ? longest(&visible, i0, i0 + count) : n_keys;
                if (j0 >= reach || j0 >= end_key(&visible, i0 + count - 1) ||
                    j0 + keys <= first_key(&visible, i0))
                    continue;
                pack_rows(&x, HEAD_OF(q, b, h) + i0 * q_t, q_t, width, x.queries);
                pack_rows(&x, gradient, y_t, value_width, z.g);
                load_rows(&x, &z, rows + 2 * row0, weights + row0 * n_keys, gradient, result, y_t);
                if (!score_tile(&x, &visible, packed + kv_head * tile_keys * width, j0, keys,
                                reach))
                    continue;
                make_ds(&x, &z, &visible,
                        packed + values_at + (kv_head * tile_keys + j0) * value_width, j0, keys,
                        true);
                add_rows(&x, &z, keys, !(axes & 4), to);
            }
}
