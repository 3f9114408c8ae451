// SPDX-License-Identifier: MIT
// Fused attention with an online softmax, GPU variant.  Host side: lib/op/attention/attention_gpu.c
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over visible j of scale * (q_i . k_j)
//
// m is the dropout mask, or 1; stored weights are p.
//
//   Work      one work-group of TX x TY work-items = BR = 4 TY queries of one head and NE * 4 TX
//             columns of its values; grid (heads of all batch entries, blocks, panels of values times
//             splits of the keys), last block first, since with a causal mask it has the most keys.  A
//             work-item holds 4 x 4 scores of a tile of BC = 4 TX keys and 4 x 4 NE sums.  Tiles that
//             no query sees are skipped
//   Memory    queries and keys by DC channels, then values by VC keys, pass through `stage`; `p`
//             [BC][BR] holds a tile's weights; 10 to 25 KiB of local memory.  With QUERY_CHANNELS, the
//             width rounded up to whole DC, queries are read once: up to 40 KiB
//   Numerics  float; running maximum per row, so exponents are <= 0; a row that sees no key gives 0.
//             WEIGHTS recomputes the scores, bit for bit, and reads `rows`
//
//   Macro    Meaning                                  Values
//   WEIGHTS  computes 0: y; 1: p, in a second launch  0 | 1

#if !defined WEIGHTS || !defined DROPOUT
#error "WEIGHTS: y or p is computed; DROPOUT: of the weights"
#endif

// Full unrolling would spill the sums.
#define UNROLL_CHANNELS  _Pragma("unroll 4")
#define UNROLL_STAGED    _Pragma("unroll 2")
#define UNROLL_ROW_ITEMS _Pragma("unroll 1")
#include "attention/attention_gpu.clh"
#include "common/softcap.clh"

// Leaves the loop over tiles j0 .. to.  clang keeps the sums twice where the loop has two exits: 253 of RDNA 2's 256 registers
// at NE 4, in place of 163.  With fewer sums ptxas needs fewer registers for a break.
#if NE > 2
#define STOP                                                                                       \
    {                                                                                              \
        j0 = to;                                                                                   \
        continue;                                                                                  \
    }
#else
#define STOP break
#endif

struct block {
    struct rows queries, keys, values; // of the block; of the head
    int i0, count, width, panel_width, n_keys, reach;
    float scale, softcap;
    __local float *stage, *p, *red, *kept;
    __local int *flag;
#if BIAS
    struct bias bias;
#endif
};

// s[r]: scores of query i0 + 4 ty + r and keys j0 + 4 tx .. + 3.  False, in every work-item, if no
// query sees any key of the tile.
static inline bool score_tile(int item, const struct block *x, const struct visibility *v, int j0,
                              float s[4][4])
{
    const int tx = TILE_X, ty = TILE_Y;
    const int last = x->i0 + x->count - 1, row = x->i0 + 4 * ty;

    if (j0 >= end_key(v, last) || j0 + BC <= first_key(v, x->i0))
        return false;
    // Inside: every query of the block sees every key of the tile, so pairs need no checks.
    const bool inside =
        !BY_MASK && x->count == BR && j0 >= first_key(v, last) && j0 + BC <= end_key(v, x->i0);
    const int n_asked = inside ? 0 : 4; // rows to check
    uint seen = inside ? 0xffffu : 0;   // bit 4 r + c
#pragma unroll 1
    for (int r = 0; r < n_asked; r++)
#pragma unroll 1
        for (int c = 0; c < 4; c++)
            if (row + r <= last && is_visible(v, row + r, j0 + 4 * tx + c))
                seen |= 1u << (4 * r + c);
    if (BY_MASK && !in_any(seen != 0, x->flag))
        return false;

#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            s[r][c] = 0.0f;
    if (j0 < x->reach)
        multiply_rows(item, x->queries, rows_from(x->keys, j0), x->width, x->kept, x->stage, s);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int length = BY_LENGTHS && row + r <= last ? length_of(v, row + r) : 0;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const bool masked = BY_LENGTHS && j0 + 4 * tx + c >= length;
            const float score =
                masked ? MASKED_SCORE : CAP_SCORE(f, s[r][c] * x->scale, x->softcap);
            s[r][c] = !(seen >> (4 * r + c) & 1u) ? -INFINITY
                      : masked                    ? score
                                                  : BIASED(x, score, row + r, j0 + 4 * tx + c);
        }
    }
    return true;
}

// Stores the exponentials of a tile's scores in `p`, with dropout by m; updates maxima, totals and sums.
static inline void absorb_tile(int item, const struct block *x, const struct weight_mask *m, int j0,
                               float s[4][4], float row_max[4], float total[4], float4 sums[4][NE])
{
    float now[4];

#pragma unroll
    for (int r = 0; r < 4; r++)
        now[r] = max_v(max_v(s[r][0], s[r][1]), max_v(s[r][2], s[r][3]));
    reduce_rows(item, now, true, x->red, now);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        now[r] = max_v(row_max[r], now[r]);
        const float shift = now[r] == -INFINITY ? 0.0f : now[r];
        const float factor = exp_nonpos_f(row_max[r] - shift);
        row_max[r] = now[r];
        total[r] *= factor;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            s[r][c] = exp_nonpos_f(s[r][c] - shift);
            total[r] += s[r][c];
        }
#pragma unroll
        for (int n = 0; n < NE; n++)
            sums[r][n] *= factor;
#if DROPOUT
        const ulong block = mask_block(m, x->i0 + 4 * TILE_Y + r, j0 + 4 * TILE_X);
        const float4 e = drop_four(&m->d, block, (float4)(s[r][0], s[r][1], s[r][2], s[r][3]));
        s[r][0] = e.s0;
        s[r][1] = e.s1;
        s[r][2] = e.s2;
        s[r][3] = e.s3;
#endif
    }
    store_tile(item, s, x->p);
}

// Stores the weights of a tile, from its scores.
static inline void store_weights(int item, const struct block *x, int j0, bool seen, float s[4][4],
                                 const float row_max[4], const float factor[4],
                                 __global float *weights)
{
    const int tx = TILE_X, ty = TILE_Y;

    for (int r = 0; r < 4 && 4 * ty + r < x->count; r++) {
        __global float *to = weights + (long)(4 * ty + r) * x->n_keys + j0 + 4 * tx;
        for (int c = 0; c < 4 && j0 + 4 * tx + c < x->n_keys; c++)
            to[c] = seen ? exp_nonpos_f(s[r][c] - row_max[r]) * factor[r] : 0.0f;
    }
}

// Returns whether keys beyond all lengths have a weight in some row: none of its other scores is well above MASKED_SCORE.
static inline bool masked_keys_count(int item, const struct block *x, const float row_max[4])
{
    const int row = 4 * TILE_Y;
    bool here = false;

#pragma unroll
    for (int r = 0; r < 4; r++)
        here |= row + r < x->count && row_max[r] < MASKED_SCORE + COMPETING;
    return in_any(here, x->flag);
}

KERNEL void attention_gpu_fwd(FORWARD_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S, p[BC * ROW_LD] IN_FLOAT4S, red[BR * (TX + 1)];
#if QUERY_CHANNELS
    __local float kept[QUERY_CHANNELS * ROW_LD] IN_FLOAT4S;
#else
    __local float *const kept = stage;
#endif
    __local int flag;
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = (blocks - 1 - (int)get_group_id(1)) * BR;
    const int e0 = (int)get_group_id(2) / n_splits * PE;
    const int count = min(BR, n_queries - i0);
    const struct visibility visible = VISIBILITY_OF(b);
    const struct block x = {
        {HEAD_OF(q, b, h) + i0 * q_t, q_t, count},
        {HEAD_OF(k, b, h / kv_group), k_t, n_keys},
        {HEAD_OF(v, b, h / kv_group) + e0, v_t, KEYS_SO_FAR},
        i0,
        count,
        width,
        min(PE, value_width - e0),
        n_keys,
        BY_LENGTHS ? longest(&visible, i0, i0 + count) : n_keys,
        scale,
        softcap,
        stage,
        p,
        red,
        kept,
        &flag BIAS_OF(b, h),
    };
    const int row = 4 * ((int)get_local_id(0) / TX);
    const long block_row = (long)head * n_queries + i0;

    for (int d0 = 0; d0 < QUERY_CHANNELS; d0 += DC)
        stage_rows((int)get_local_id(0), x.queries.x, q_t, BR, count, d0, width, kept + d0 * ROW_LD,
                   ROW_LD);
#if WEIGHTS
    float row_max[4], factor[4];
    rows += 2 * block_row;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        row_max[r] = row + r < count ? rows[2 * (row + r)] : 0.0f;
        factor[r] = row + r < count ? rows[2 * (row + r) + 1] : 0.0f;
    }
    for (int j0 = 0; j0 < n_keys; j0 += BC) {
        float s[4][4];
        const int item = ITEM_AT(j0, width);
        const bool seen = score_tile(item, &x, &visible, j0, s);
        store_weights(item, &x, j0, seen, s, row_max, factor, weights + block_row * n_keys);
    }
#else
    const bool whole = n_splits == 1;
    const int split = (int)get_group_id(2) % n_splits;
    const long n_rows = (long)get_num_groups(0) * n_queries;
    const int from = max(first_key(&visible, i0) / BC * BC, split * split_keys);
    const int last = end_key(&visible, i0 + count - 1);
    const int to = whole ? last : min(last, (split + 1) * split_keys);
    const struct weight_mask dropped = WEIGHT_MASK_OF(head);
    float row_max[4], total[4];
    float4 sums[4][NE];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        row_max[r] = -INFINITY;
        total[r] = 0.0f;
#pragma unroll
        for (int n = 0; n < NE; n++)
            sums[r][n] = (float4)(0.0f);
    }
    for (int j0 = from; j0 < to; j0 += BC) {
        const int item = ITEM_AT(j0, width);
        float s[4][4];
        if (BY_LENGTHS && j0 >= x.reach && !masked_keys_count(item, &x, row_max))
            STOP;
        if (!score_tile(item, &x, &visible, j0, s))
            continue;
        absorb_tile(item, &x, &dropped, j0, s, row_max, total, sums);
        add_matmul(item, p, rows_from(x.values, j0), x.panel_width, stage, sums);
    }
    const int item = (int)get_local_id(0);
    reduce_rows(item, total, false, red, total);
    __global float *partials = scratch + partials_at + split * n_rows * 2;
    __global float *part_sums = scratch + partials_at + n_splits * n_rows * 2 +
                                (split * n_rows + block_row) * value_width + e0;
    float factor[4]; // 1 / totals, or 1 for partial results
#pragma unroll
    for (int r = 0; r < 4; r++)
        factor[r] = !whole ? 1.0f : total[r] == 0.0f ? 0.0f : 1.0f / total[r];
    store_sums(item, sums, factor, count, x.panel_width,
               whole ? y + b * y_b + i0 * y_t + (long)h * value_width + e0 : part_sums,
               whole ? y_t : value_width);
    __global float *pairs = (whole ? rows : partials) + 2 * block_row;
    if ((keep_rows || !whole) && e0 == 0 && get_local_id(0) % TX == 0)
#pragma unroll
        for (int r = 0; r < 4; r++)
            if (row + r < count) {
                pairs[2 * (row + r)] = whole && row_max[r] == -INFINITY ? 0.0f : row_max[r];
                pairs[2 * (row + r) + 1] = whole ? factor[r] : total[r];
            }
#endif
}
