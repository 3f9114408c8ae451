// SPDX-License-Identifier: MIT
// Gradients of fused attention with matrix instructions, GPU variant.  Host side:
// lib/op/attention/attention_bwd.c
//
// attention_bwd_gpu.clh has the formulas and arguments.
//
//   Work      one work-group = BR rows of one head's result and COLUMNS of its columns; a sub-group of MMA_LANES
//             work-items has 16 of the rows; grid (heads, blocks of rows, panels of columns).  A sub-group holds
//             16 pairs per column of a tile, the first factor of the second products, and all sums of its rows
//   Memory    the other factors pass through `stage` as in attention_gpu_mma.cl, 5 to 10 KiB; each work-item
//             reads its own rows, by DC channels, and with MAKES_TILES keeps its p and ds in 16 KiB.  KEEP
//             stores ds in DK_DV for DQ, else DQ recomputes it
//   Numerics  as in common/mma.clh; p from the same scores as the forward pass; sums in a fixed order
//
//   Macro    Meaning                                  Values
//   COLUMNS  of the result, zeros after the last one  32 | 64 | 96 | 128

#ifndef COLUMNS
#error "COLUMNS: of the result"
#endif

#include "attention/attention_bwd_gpu.clh"
#define VALUE_WIDTH COLUMNS // columns of the second products
#include "attention/attention_gpu_mma.clh"

#define TILE_QUERIES QUERY(BR, BC)
#define TILE_KEYS    KEY(BR, BC)

#if BY_LENGTHS && !BY_MASK
#define BY_RANGE (OUTPUT == DK_DV) // only the range decides which pairs are wanted
#else
#define BY_RANGE (MASKING == 0)
#endif

// Whether all pairs of the tile are wanted.
static inline bool all_wanted(const struct problem *x, int query, int key)
{
    const struct visibility *v = &x->visible;

    return BY_RANGE && query + TILE_QUERIES <= x->n_queries && key + TILE_KEYS <= x->n_keys &&
           first_key(v, query + TILE_QUERIES - 1) <= key && key + TILE_KEYS <= end_key(v, query);
}

// Bit MMA_C n + c: pair (n, c) of the work-item must be computed; row: its first.
static inline uint wanted_pairs(const struct problem *x, int row, int j0)
{
    uint wanted = 0;

#pragma unroll 1
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll 1
        for (int c = 0; c < MMA_C; c++) {
            const int i = row + ROW_OF(c), j = j0 + TERM_OF(n, c);
            if (is_wanted(x, QUERY(i, j), KEY(i, j)))
                wanted |= 1u << (MMA_C * n + c);
        }
    return wanted;
}
#define IS_WANTED(n, c) (wanted >> (MMA_C * (n) + (c)) & 1u)

#if MAKES_TILES
// The factors of a tile's scores, or of the products of g and v.
struct factors {
    struct queries rows;
    struct rows columns; // of the head
};

#if DROPOUT
#define MASK_BLOCKS (TILE_KEYS / 4)

// A bit per key of each block of four, set if it is kept: [TILE_QUERIES][MASK_BLOCKS].  Shared, since the keys of
// a block belong to several work-items.
LOCAL_INLINE void make_mask(const struct problem *x, int query, int key, __local uchar *mask)
{
    for (int at = (int)get_local_id(0); at < TILE_QUERIES * MASK_BLOCKS; at += LS) {
        const ulong block =
            mask_block(&x->dropped, query + at / MASK_BLOCKS, key + at % MASK_BLOCKS * 4);
        const float4 four = drop_four(&x->dropped.d, block, (float4)(1.0f));
        mask[at] = (uchar)((four.s0 > 0.0f ? 1 : 0) | (four.s1 > 0.0f ? 2 : 0) |
                           (four.s2 > 0.0f ? 4 : 0) | (four.s3 > 0.0f ? 8 : 0));
    }
}

// The dropout factor of a pair; indices relative to the tile.
LOCAL_INLINE float mask_of(const struct problem *x, __local const uchar *mask, int query, int key)
{
    return mask[query * MASK_BLOCKS + key / 4] >> key % 4 & 1 ? x->dropped.d.scale : 0.0f;
}
#endif

// The work-item's private slot for element c of piece n in local memory, which saves registers and needs no
// barrier.
#define PAIR(n, c) (((n)*MMA_C + (c)) * LS + (int)get_local_id(0))
#define PAIRS      (KEY_PIECES * MMA_C * LS)

// Computes the products of the work-item's pairs with columns j0 .. j0 + BC - 1.
LOCAL_INLINE void multiply(const struct factors *x, int j0, __local float *stage,
                           __local float *box, __local float *pairs)
{
    float sum[KEY_PIECES][MMA_C], rest[KEY_PIECES][MMA_C];

    clear_tile(sum);
    clear_tile(rest);
    multiply_keys(&x->rows, rows_from(x->columns, j0), stage, box, sum, rest);
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++)
            pairs[PAIR(n, c)] = mma_total(sum[n][c], rest[n][c]);
}

LOCAL_INLINE void load_pairs(__local const float *pairs, float x[KEY_PIECES][MMA_C])
{
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++)
            x[n][c] = pairs[PAIR(n, c)];
}

// Turns the work-item's scores and products of g and v, in place, into p with dropout and ds; row: its first.
LOCAL_INLINE void make_tile(const struct problem *x, int row, int i0, int j0, uint wanted,
                            __local const uchar *mask, __local float *p, __local float *ds)
{
#if DROPOUT
#define KEPT(query, key) mask_of(x, mask, (query)-QUERY(i0, j0), (key)-KEY(i0, j0)) *
#else
#define KEPT(query, key)
#endif
// Unrolled, all pieces would need registers at once.
#pragma unroll 1
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++) {
            // Pairs outside compute unused values, to avoid a branch.
            const int i = row + ROW_OF(c), j = j0 + TERM_OF(n, c);
            const int query = min(QUERY(i, j), x->n_queries - 1);
            const int key = min(KEY(i, j), x->n_keys - 1);
            const float weight = weight_of(x, p[PAIR(n, c)], query, key);
            const float g_v = KEPT(query, key) ds[PAIR(n, c)];
            const float e = score_gradient(x, p[PAIR(n, c)], weight, g_v, query, key);
            ds[PAIR(n, c)] = IS_WANTED(n, c) ? e : 0.0f;
            p[PAIR(n, c)] = IS_WANTED(n, c) ? KEPT(query, key) weight : 0.0f;
        }
}
#endif

#if KEEP
#if OUTPUT == DK_DV
static inline void keep_tile(const struct problem *x, struct kept_ds kept, int row, int j0,
                             float ds[KEY_PIECES][MMA_C])
{
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c += TERMS) {
            const int key = row + ROW_OF(c), query = j0 + TERM_OF(n, c);
            __global float *at = kept.x + (long)key * kept.pitch + query;
            if (key >= x->n_keys || query >= x->n_queries)
                continue;
#if TERMS == 2
            *(__global float2 *)at = (float2)(ds[n][c], ds[n][c + 1]);
#else
            *(__global float4 *)at = (float4)(ds[n][c], ds[n][c + 1], ds[n][c + 2], ds[n][c + 3]);
#endif
        }
}
#else
static inline void read_tile(struct kept_ds kept, int row, int j0, uint wanted,
                             float ds[KEY_PIECES][MMA_C])
{
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++) {
            const int query = row + ROW_OF(c), key = j0 + TERM_OF(n, c);
            ds[n][c] = IS_WANTED(n, c) ? kept.x[(long)key * kept.pitch + query] : 0.0f;
        }
}
#endif
#endif

// sums += the pairs times the columns of `rows` from e0 on.
LOCAL_INLINE void add_tile(float pairs[KEY_PIECES][MMA_C], struct rows rows, int e0, int width,
                           __local float *stage, __local float *box, float sums[SUM_PIECES][MMA_C])
{
    float high[KEY_PIECES][MMA_C], low[KEY_PIECES][MMA_C];

#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++)
            mma_split(pairs[n][c], &high[n][c], &low[n][c]);
    add_products(high, low, rows, e0, width, stage, box, sums);
}

KERNEL void attention_bwd_gpu_mma(GRADIENT_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S;
    __local int flag;
#if MAKES_TILES
    __local float p_pairs[PAIRS], ds_pairs[PAIRS];
#endif
    MMA_LOCAL(box);
#if MAKES_TILES && DROPOUT
    __local uchar mask_bits[TILE_QUERIES * MASK_BLOCKS];
#elif MAKES_TILES
    __local uchar *const mask_bits = 0;
#endif
    const int head = first_head + (int)get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(1) - 1 - (int)get_group_id(1)) * BR;
    const int e0 = (int)get_group_id(2) * COLUMNS;
    const int row = i0 + (int)get_local_id(0) / MMA_LANES * 16 + LANE_ROW;
    const struct problem x = PROBLEM_OF(head, b, h);
    const struct rows queries = {HEAD_OF(q, b, h), q_t, n_queries};
    const struct rows keys = {HEAD_OF(k, b, h / kv_group), k_t, n_keys};
#if MAKES_TILES
    const struct rows gradients = {g + b * g_b + (long)h * value_width, g_t, n_queries};
    const struct rows values = {HEAD_OF(v, b, h / kv_group), v_t, n_keys};
#endif
#if OUTPUT == DK_DV
    const struct rows row_operand = keys, col_operand = queries, row_gv_operand = values,
                      col_gv_operand = gradients;
    float value_sums[SUM_PIECES][MMA_C];
    clear_sums(value_sums);
#else
    const struct rows row_operand = queries, col_operand = keys;
#if MAKES_TILES
    const struct rows row_gv_operand = gradients, col_gv_operand = values;
#endif
#endif
    const int end_row = min(i0 + BR, row_operand.count);
#if MAKES_TILES
    const struct factors scores = {{{row_operand.x, row_operand.t, end_row}, row, width},
                                   col_operand};
    const struct factors g_v = {{{row_gv_operand.x, row_gv_operand.t, end_row}, row, value_width},
                                col_gv_operand};
#endif
#if KEEP
    const struct kept_ds kept = KEPT_DS_OF_GROUP;
#endif
    float sums[SUM_PIECES][MMA_C], ones[ROWS];
    int from, end;

#pragma unroll
    for (int r = 0; r < ROWS; r++)
        ones[r] = 1.0f;
    clear_sums(sums);
    find_columns(&x, i0, end_row - 1, BC, &from, &end);
    for (int j0 = from; j0 < end; j0 += BC) {
        const bool all = all_wanted(&x, QUERY(i0, j0), KEY(i0, j0));
        const uint wanted = all ? 0xffffffffu : wanted_pairs(&x, row, j0);
        float pairs[KEY_PIECES][MMA_C];
        if (!BY_RANGE && !in_any(wanted != 0, &flag))
            continue;
#if !MAKES_TILES
        read_tile(kept, row, j0, wanted, pairs);
#else
#if DROPOUT
        make_mask(&x, QUERY(i0, j0), KEY(i0, j0), mask_bits); // read after the products' barriers
#endif
        multiply(&scores, j0, stage, box, p_pairs);
        multiply(&g_v, j0, stage, box, ds_pairs);
        make_tile(&x, row, i0, j0, wanted, mask_bits, p_pairs, ds_pairs);
#if OUTPUT == DK_DV
        load_pairs(p_pairs, pairs);
        add_tile(pairs, rows_from(col_gv_operand, j0), e0, value_width, stage, box, value_sums);
#endif
        load_pairs(ds_pairs, pairs);
#endif
#if KEEP && OUTPUT == DK_DV
        if (e0 == 0)
            keep_tile(&x, kept, row, j0, pairs);
#endif
        add_tile(pairs, rows_from(col_operand, j0), e0, width, stage, box, sums);
    }
    store_sums(sums, ones, row, end_row, width - e0,
               dq_or_dk + dq_or_dk_at + (long)head * row_operand.count * width + e0, width);
#if OUTPUT == DK_DV
    store_sums(value_sums, ones, row, end_row, value_width - e0,
               dv + dv_at + (long)head * row_operand.count * value_width + e0, value_width);
#endif
}
