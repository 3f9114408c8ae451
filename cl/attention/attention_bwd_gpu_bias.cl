// SPDX-License-Identifier: MIT
// The gradient of attention's bias, GPU variant.  Host side: lib/op/attention/attention_bwd_bias.c
//
//   dbias_ij = sum over the scores that share the element of p_ij (m_ij g_i . v_j + c_ij - delta_i)
//
//   Work      one work-group of TX x TY work-items = BR x BC elements of the table, or BC of its one row; grid (tiles of
//             keys, blocks of queries, batch entries and heads of the table).  Loops over the batch entries, heads and
//             queries that share its elements.  A work-item holds 4 x 4 products of each kind and 4 x 4 sums
//   Memory    as attention_gpu.cl
//   Numerics  float; p from the same scores as the forward pass; sums in the order of batch entries, heads and queries
//
//   Macro    Meaning                 Values
//   TX       work-items along keys   16
//   TY       along queries           8
//   DC       channels at a time      32
//   NE       as attention_gpu.clh    1; it has no sums of rows
//   MASKING  as attention.clh        0 | 3
//   BIAS     as attention.clh, a table  1 | 3

#if !defined BIAS || !(BIAS & 1)
#error "BIAS: a table"
#endif

#define OUTPUT 2
#define KEEP   0
#include "attention/attention_bwd_gpu_tile.clh"

// A tile's products in local memory.
#if REMATERIALIZE
#define PRODUCTS_FLOATS (BC * ROW_LD)
#else
#define PRODUCTS_FLOATS 1
#endif

// Bit 4 r + c: the work-item must compute pair (r, c).  Bits come from the last pair on: with shifts by n
// Intel's compiler keeps products and sums in memory.
static inline uint wanted_pairs(int item, const struct problem *x, int i0, int j0)
{
    uint wanted = 0;

    for (int n = 15; n >= 0; n--)
        wanted = 2 * wanted + is_wanted(x, i0 + 4 * TILE_Y + n / 4, j0 + 4 * TILE_X + n % 4);
    return wanted;
}

// Stores the sum over the work-group's rows; `parts` [TY][BC] holds the work-items' sums.
LOCAL_INLINE void store_row(int item, float sum[4][4], int keys, __local float *parts,
                            __global float *to)
{
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int c = 0; c < 4; c++)
        parts[TILE_Y * BC + 4 * TILE_X + c] = sum[0][c] + sum[1][c] + sum[2][c] + sum[3][c];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = item; j < keys; j += LS) {
        float all = parts[j];
        for (int y = 1; y < TY; y++)
            all += parts[y * BC + j];
        to[j] = all;
    }
}

// dq_or_dk: dbias, with the table's shape; other arguments as in attention_bwd_gpu.clh.
KERNEL void attention_bwd_gpu_bias(int n_batch, GRADIENT_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S, products[PRODUCTS_FLOATS] IN_FLOAT4S;
    __local int flag;
    const int item = (int)get_local_id(0), j0 = (int)get_group_id(0) * BC;
    const int first = axes & 4 ? (int)get_group_id(1) * BR : 0;
    const int end = axes & 4 ? min(n_queries, first + BR) : n_queries;
    const int entry = get_group_id(2), table_heads = axes & 2 ? n_heads : 1;
    const int b0 = axes & 1 ? entry / table_heads : 0, end_b = axes & 1 ? b0 + 1 : n_batch;
    const int h0 = axes & 2 ? entry % table_heads : 0, end_h = axes & 2 ? h0 + 1 : n_heads;
    float sum[4][4];

#pragma unroll
    for (int n = 0; n < 16; n++)
        sum[n / 4][n % 4] = 0.0f;
    for (int b = b0; b < end_b; b++)
        for (int h = h0; h < end_h; h++)
            for (int i0 = first; i0 < end; i0 += BR) {
                const struct problem x = PROBLEM_OF(b * n_heads + h, b, h);
                const uint wanted = wanted_pairs(item, &x, i0, j0);
                float ds[4][4];
                if (!in_any(wanted != 0, &flag))
                    continue;
                const struct rows queries = {HEAD_OF(q, b, h) + i0 * q_t, q_t, min(BR, end - i0)};
                const struct rows keys = {HEAD_OF(k, b, h / kv_group), k_t, n_keys};
                const struct rows gradients = {g + b * g_b + i0 * g_t + (long)h * value_width, g_t,
                                               min(BR, end - i0)};
                const struct rows values = {HEAD_OF(v, b, h / kv_group), v_t, n_keys};
                make_tile(item, &x, queries, rows_from(keys, j0), gradients, rows_from(values, j0),
                          i0, j0, wanted, stage, products, ds);
#pragma unroll
                for (int n = 0; n < 16; n++)
                    sum[n / 4][n % 4] += ds[n / 4][n % 4];
            }
    __global float *row =
        dq_or_dk + ((long)entry * (axes & 4 ? n_queries : 1) + first) * n_keys + j0;
    if (!(axes & 4)) {
        store_row(item, sum, min(BC, n_keys - j0), stage, row);
        return;
    }
#pragma unroll
    for (int n = 0; n < 16; n++) {
        const int r = 4 * TILE_Y + n / 4, c = 4 * TILE_X + n % 4;
        if (first + r < end && j0 + c < n_keys)
            row[(long)r * n_keys + c] = sum[n / 4][n % 4];
    }
}
