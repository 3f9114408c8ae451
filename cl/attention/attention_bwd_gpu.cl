// SPDX-License-Identifier: MIT
// Gradients of fused attention, GPU variant.  Host side: lib/op/attention/attention_bwd.c
//
// attention_bwd_gpu.clh has the formulas and arguments.
//
//   Work      one work-group of TX x TY work-items = BR rows of one head's result and NE * 4 TX of its
//             columns; grid (heads, blocks of rows, panels of columns).  A work-item holds 4 x 4 elements
//             of a tile and 4 x 4 NE sums, for DK_DV twice
//   Memory    as attention_gpu.cl; KEEP stores ds in DK_DV for DQ, else DQ recomputes it
//   Numerics  float; p from the same scores as the forward pass; sums in a fixed order
//
//   Macro  Meaning                                         Values
//   TX     work-items along columns                        16 | 32
//   TY     work-items along rows                           4 | 8
//   NE     float4s of a row's sums that a work-item holds  1 | 2

#include "attention/attention_bwd_gpu_tile.clh"

#if KEEP
#if OUTPUT == DK_DV
static inline void keep_tile(int item, const struct problem *x, struct kept_ds kept, int i0, int j0,
                             float ds[4][4])
{
    const int query = j0 + 4 * TILE_X;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int key = i0 + 4 * TILE_Y + r;
        if (key < x->n_keys && query < x->n_queries)
            *(__global float4 *)(kept.x + (long)key * kept.pitch + query) =
                (float4)(ds[r][0], ds[r][1], ds[r][2], ds[r][3]);
    }
}
#else
static inline void read_tile(int item, struct kept_ds kept, int i0, int j0, uint seen,
                             float ds[4][4])
{
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const long key = j0 + 4 * TILE_X + c;
        float4 four = (float4)(0.0f);
        if (seen >> c & 0x1111u)
            four = *(__global const float4 *)(kept.x + key * kept.pitch + i0 + 4 * TILE_Y);
        const float of[4] = {four.s0, four.s1, four.s2, four.s3};
#pragma unroll
        for (int r = 0; r < 4; r++)
            ds[r][c] = seen >> (4 * r + c) & 1u ? of[r] : 0.0f;
    }
}
#endif
#endif

static inline void clear_sums(float4 sums[4][NE])
{
    for (int r = 0; r < 4; r++)
        for (int n = 0; n < NE; n++)
            sums[r][n] = (float4)(0.0f);
}

KERNEL void attention_bwd_gpu(GRADIENT_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S, p[BC * ROW_LD] IN_FLOAT4S;
    __local int flag;
    const int head = first_head + (int)get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = ((int)get_num_groups(1) - 1 - (int)get_group_id(1)) * BR;
    const int e0 = (int)get_group_id(2) * PE;
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
    float4 value_sums[4][NE];
    clear_sums(value_sums);
#else
    const struct rows row_operand = queries, col_operand = keys;
#if MAKES_TILES
    const struct rows row_gv_operand = gradients, col_gv_operand = values;
#endif
#endif
#if KEEP
    const struct kept_ds kept = KEPT_DS_OF_GROUP;
#endif
    const int count = min(BR, row_operand.count - i0);
    const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float4 sums[4][NE];
    int from, end;

    clear_sums(sums);
    find_columns(&x, i0, i0 + count - 1, BC, &from, &end);
    for (int j0 = from; j0 < end; j0 += BC) {
        const int item = ITEM_AT(j0, width);
        uint seen = 0; // bit 4 r + c
        for (int n = 0; n < 16; n++) {
            const int i = i0 + 4 * TILE_Y + n / 4, j = j0 + 4 * TILE_X + n % 4;
            if (is_wanted(&x, QUERY(i, j), KEY(i, j)))
                seen |= 1u << n;
        }
        if (!in_any(seen != 0, &flag))
            continue;
        const struct rows tile = rows_from(col_operand, j0);
        const struct rows products = {tile.x + e0, tile.t, tile.count};
        float ds[4][4];
#if !MAKES_TILES
        read_tile(item, kept, i0, j0, seen, ds);
#else
        const struct rows gv_tile = rows_from(col_gv_operand, j0);
        const struct rows block = {row_operand.x + i0 * row_operand.t, row_operand.t, count};
        const struct rows gv_block = {row_gv_operand.x + i0 * row_gv_operand.t, row_gv_operand.t,
                                      count};
        make_tile(item, &x, block, tile, gv_block, gv_tile, i0, j0, seen, stage, p, ds);
#endif
#if OUTPUT == DK_DV
        const struct rows value_products = {gv_tile.x + e0, gv_tile.t, gv_tile.count};
#if KEEP
        if (e0 == 0)
            keep_tile(item, &x, kept, i0, j0, ds);
#endif
        add_matmul(item, p, value_products, value_width - e0, stage, value_sums);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        store_tile(item, ds, p);
        add_matmul(item, p, products, width - e0, stage, sums);
    }
    const int item = (int)get_local_id(0);
    store_sums(item, sums, ones, count, min(PE, width - e0),
               dq_or_dk + dq_or_dk_at + ((long)head * row_operand.count + i0) * width + e0, width);
#if OUTPUT == DK_DV
    store_sums(item, value_sums, ones, count, min(PE, value_width - e0),
               dv + dv_at + ((long)head * row_operand.count + i0) * value_width + e0, value_width);
#endif
}
