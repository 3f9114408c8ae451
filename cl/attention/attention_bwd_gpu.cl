// SPDX-License-Identifier: MIT
// Gradients of fused attention, GPU variant.  Host side: lib/op/attention/attention_bwd.c
//
//   ds_ij = scale p_ij (m_ij g_i . v_j + c_ij - delta_i)
//   dq_i = sum_j ds_ij k_j      dk_j = sum_i ds_ij q_i      dv_j = sum_i m_ij p_ij g_i
//
// g is the gradient of y, c that of p where has_c, m the mask of dropout, or 1, delta from
// attention_bwd_gpu_delta.cl, `rows` from the forward pass.
//
//   Work      one work-group of TX x TY work-items = BR rows of one head's result and NE * 4 TX of its
//             columns; grid (heads of all batch entries, blocks of rows, panels of columns).  Rows
//             of dq are queries, and their tiles' columns keys; of dk and dv the other way round.
//             A work-item holds 4 x 4 numbers of a tile and 4 x 4 NE sums
//   Memory    as attention_gpu.cl; p and ds are recomputed for each of the three
//   Numerics  float; p from the same scores as the forward pass; sums in a fixed order
//
//   Macro     Meaning                                           Values
//   LS        work-group size                                   TX TY
//   VW        floats in a vector                                4
//   NE        float4s of a row's sums that a work-item holds    1 | 2
//   ALIGNED   rows start at and consist of whole float4s        0 | 1
//   MASKING   what hides keys, beside the range                 0 .. 2
//   DROPOUT   of the weights                                    0 | 1
//   OUTPUT    which gradient                                    DQ | DK | DV

// A work-group of 128, whatever the widths.
#define TX             16
#define TY             8
#define DC             32
#define QUERY_CHANNELS 0 // three products take the space
#include "attention/attention_gpu.clh"

#if !defined OUTPUT || !defined DROPOUT
#error "OUTPUT: DQ, DK or DV; DROPOUT: of the weights"
#endif

#define DQ 0
#define DK 1
#define DV 2

// A pair of row i and column j of a tile, as query and key.
#if OUTPUT == DQ
#define QUERY(i, j) (i)
#define KEY(i, j)   (j)
#else
#define QUERY(i, j) (j)
#define KEY(i, j)   (i)
#endif

struct problem {
    struct visibility visible;
    int n_queries, n_keys, width, value_width, has_c;
    float scale;
    __global const float *c, *rows, *delta; // of the head
    __local float *stage;
    struct weight_mask dropped;
};

// Does the pair count?
static inline bool counts(const struct problem *x, int query, int key)
{
    if (query >= x->n_queries || key >= x->n_keys || !is_visible(&x->visible, query, key))
        return false;
#if MASKING == BY_LENGTHS && OUTPUT != DV
    return key < length_of(&x->visible, query);
#else
    return true;
#endif
}

// p of a pair that counts, from its product.
static inline float weight(const struct problem *x, float product, int query, int key)
{
    float score = product * x->scale;
#if MASKING == BY_LENGTHS
    if (key >= length_of(&x->visible, query))
        score = MASKED_SCORE;
#endif
    return exp_nonpos_f(score - x->rows[2 * query]) * x->rows[2 * query + 1];
}

#if DROPOUT
// The mask of the work-item's pairs of a tile.  The four keys of a query are one block.
static inline void make_mask(const struct problem *x, int i0, int j0, float kept[4][4])
{
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const int i = i0 + 4 * TILE_Y, j = j0 + 4 * TILE_X;
        const int query = OUTPUT == DQ ? i + n : j + n, key = OUTPUT == DQ ? j : i;
        const float4 four =
            drop_four(&x->dropped.d, mask_block(&x->dropped, query, key), (float4)(1.0f));
        const float of[4] = {four.s0, four.s1, four.s2, four.s3};
        for (int k = 0; k < 4; k++)
            kept[OUTPUT == DQ ? n : k][OUTPUT == DQ ? k : n] = of[k];
    }
}
#endif

// d[r][c]: what row i0 + 4 ty + r takes of column j0 + 4 tx + c, p or ds.  rows, columns: of
// queries and keys; g_rows, v_columns: of g and v, alike.
static inline void make_tile(const struct problem *x, struct rows rows, struct rows columns,
                             struct rows other_rows, struct rows other_columns, int i0, int j0,
                             uint seen, float d[4][4])
{
    float s[4][4];

    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            s[r][c] = d[r][c] = 0.0f;
    multiply_rows(rows, columns, x->width, x->stage, x->stage, s);
#if OUTPUT != DV
    multiply_rows(other_rows, other_columns, x->value_width, x->stage, x->stage, d);
#endif
#if DROPOUT
    float kept[4][4];
    make_mask(x, i0, j0, kept);
#define KEPT(r, c) kept[r][c] *
#else
#define KEPT(r, c)
#endif
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int i = i0 + 4 * TILE_Y + r, j = j0 + 4 * TILE_X + c;
            const int query = QUERY(i, j), key = KEY(i, j);
            if (!(seen >> (4 * r + c) & 1u)) {
                d[r][c] = 0.0f;
                continue;
            }
            const float p = weight(x, s[r][c], query, key);
#if OUTPUT == DV
            d[r][c] = KEPT(r, c) p;
#else
            float e = KEPT(r, c) d[r][c] - x->delta[query];
            if (x->has_c)
                e += x->c[(long)query * x->n_keys + key];
            d[r][c] = p * e * x->scale;
#endif
        }
}

// The columns that rows i0 .. last can meet: [from, to).
static inline void find_columns(const struct problem *x, int i0, int last, int *from, int *to)
{
    const struct visibility *v = &x->visible;
#if OUTPUT == DQ
    *from = first_key(v, i0);
    *to = end_key(v, last);
#else
    *from = max(0, i0 - v->offset - v->window_right);
    *to = min(x->n_queries, last - v->offset + v->window_left + 1);
#endif
    *from = *from / BC * BC;
}

// g: element (b, t, h, e) at b * g_b + t * g_t + h * value_width + e.  c: [B, H, T, S].  rows:
// [B, H, T], a maximum and 1 / total.  delta: [B, H, T].  to: dq [B, H, T, width], dk [B, H, S, width] or dv
// [B, H, S, value_width].
KERNEL void attention_bwd_gpu(HEADS(q), HEADS(k), HEADS(v), __global const float *restrict g,
                              long g_b, long g_t, __global const float *restrict c, int has_c,
                              VISIBILITY_PARAMS, __global const float *restrict rows,
                              __global const float *restrict delta, __global float *restrict to,
                              int n_heads, int n_queries, int n_keys, int width, int value_width,
                              float scale, WEIGHT_MASK_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S, p[BC * ROW_LD] IN_FLOAT4S;
    __local int flag;
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(1) - 1 - (int)get_group_id(1)) * BR;
    const int e0 = (int)get_group_id(2) * PE;
    const struct problem x = {VISIBILITY_OF(b),
                              n_queries,
                              n_keys,
                              width,
                              value_width,
                              has_c,
                              scale,
                              c + (long)head * n_queries * n_keys,
                              rows + 2 * (long)head * n_queries,
                              delta + (long)head * n_queries,
                              stage,
                              WEIGHT_MASK_OF(head)};
    const struct rows queries = {HEAD_OF(q, b, h), q_t, n_queries};
    const struct rows keys = {HEAD_OF(k, b, h), k_t, n_keys};
    const struct rows gradients = {g + b * g_b + (long)h * value_width, g_t, n_queries};
    const struct rows values = {HEAD_OF(v, b, h), v_t, n_keys};
#if OUTPUT == DQ
    const struct rows mine = queries, theirs = keys, mine_too = gradients, theirs_too = values;
#else
    const struct rows mine = keys, theirs = queries, mine_too = values, theirs_too = gradients;
#endif
#if OUTPUT == DV
    const struct rows taken = theirs_too;
    const int result_width = value_width;
#else
    const struct rows taken = theirs;
    const int result_width = width;
#endif
    const int count = min(BR, mine.count - i0);
    const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float4 sums[4][NE];
    int from, end;

    for (int r = 0; r < 4; r++)
        for (int n = 0; n < NE; n++)
            sums[r][n] = (float4)(0.0f);
    find_columns(&x, i0, i0 + count - 1, &from, &end);
    for (int j0 = from; j0 < end; j0 += BC) {
        uint seen = 0; // bit 4 r + c
        for (int n = 0; n < 16; n++) {
            const int i = i0 + 4 * TILE_Y + n / 4, j = j0 + 4 * TILE_X + n % 4;
            if (counts(&x, QUERY(i, j), KEY(i, j)))
                seen |= 1u << n;
        }
        if (!in_any(seen != 0, &flag))
            continue;
        const struct rows tile = rows_from(theirs, j0), tile_too = rows_from(theirs_too, j0);
        const struct rows block = {mine.x + i0 * mine.t, mine.t, count};
        const struct rows block_too = {mine_too.x + i0 * mine_too.t, mine_too.t, count};
        const struct rows products = {taken.x + j0 * taken.t + e0, taken.t, taken.count - j0};
        float d[4][4];
        make_tile(&x, block, tile, block_too, tile_too, i0, j0, seen, d);
        store_tile(d, p);
        add_matmul(p, products, result_width - e0, stage, sums);
    }
    store_sums(sums, ones, count, min(PE, result_width - e0),
               to + ((long)head * mine.count + i0) * result_width + e0, result_width);
}
