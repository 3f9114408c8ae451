// SPDX-License-Identifier: MIT
// Fused attention with an online softmax and matrix instructions, GPU variant.  Host side:
// lib/op/attention/attention_gpu.c
//
//   y_i = sum_j p_ij v_j,   p_ij = softmax over visible j of scale * (q_i . k_j)
//
//   Work      one work-group = BR queries of one head; a sub-group of MMA_LANES work-items has 16 of them; grid
//             (heads of all batch entries, blocks, splits of the keys), last block first, since with a causal
//             mask it has the most keys.  A sub-group holds 16 scores per key of a tile and all sums of its
//             queries; tiles that no query sees are skipped
//   Memory    keys by DC channels, then values by EC columns, pass through `stage`, split for the instruction:
//             9 to 25 KiB of local memory; each work-item reads its own queries, by DC channels
//   Numerics  as in common/mma.clh; running maximum per row, so exponents are <= 0; a row that sees no key
//             gives 0

#include "attention/attention_gpu_mma.clh"
#include "common/softcap.clh"

struct block {
    struct queries queries;   // of the head, up to the block's last
    struct rows keys, values; // of the head
    int i0, count, value_width, reach;
    float scale, softcap;
    __local float *stage, *red, *box;
    __local int *flag;
#if BIAS
    struct bias bias;
#endif
};

// Bit MMA_C n + c: pair (n, c) of the work-item is visible.
static inline uint visible_pairs(const struct block *x, const struct visibility *v, int j0)
{
    const int last = x->i0 + x->count - 1;
    uint seen = 0;

#pragma unroll 1
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll 1
        for (int c = 0; c < MMA_C; c++) {
            const int i = x->queries.row + ROW_OF(c), j = j0 + TERM_OF(n, c);
            if (i <= last && is_visible(v, i, j))
                seen |= 1u << (MMA_C * n + c);
        }
    return seen;
}

// s: scores of the work-item's pairs.  False, in every work-item, if no query sees any key of the tile.
LOCAL_INLINE bool score_tile(const struct block *x, const struct visibility *v, int j0,
                             float s[KEY_PIECES][MMA_C])
{
    const int last = x->i0 + x->count - 1;
    float rest[KEY_PIECES][MMA_C];

    if (j0 >= end_key(v, last) || j0 + BC <= first_key(v, x->i0))
        return false;
    // Inside: every query of the block sees every key of the tile, so pairs need no checks.
    const bool inside =
        !BY_MASK && x->count == BR && j0 >= first_key(v, last) && j0 + BC <= end_key(v, x->i0);
    const uint seen = inside ? 0xffffffffu : visible_pairs(x, v, j0);
    if (BY_MASK && !in_any(seen != 0, x->flag))
        return false;

    clear_tile(s);
    clear_tile(rest);
    if (j0 < x->reach)
        multiply_keys(&x->queries, rows_from(x->keys, j0), x->stage, x->box, s, rest);
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++) {
            const int i = x->queries.row + ROW_OF(c), j = j0 + TERM_OF(n, c);
            const bool masked = BY_LENGTHS && i <= last && j >= length_of(v, i);
            const float score =
                masked ? MASKED_SCORE
                       : CAP_SCORE(f, mma_total(s[n][c], rest[n][c]) * x->scale, x->softcap);
            s[n][c] = !(seen >> (MMA_C * n + c) & 1u) ? -INFINITY
                      : masked                        ? score
                                                      : BIASED(x, score, i, j);
        }
    return true;
}

// Stores this work-item's value of each of its queries; load_row_parts() loads those of all four.
LOCAL_INLINE void share_row_parts(const float mine[ROWS], __local float *red)
{
    const int row = (int)get_local_id(0) / MMA_LANES * 16 + LANE_ROW;

    for (int r = 0; r < ROWS; r++)
        red[(row + 8 * r) * 4 + LANE_PART] = mine[r];
}

LOCAL_INLINE float4 load_row_parts(__local const float *red, int r)
{
    const int row = (int)get_local_id(0) / MMA_LANES * 16 + LANE_ROW;

    return *(__local const float4 *)(red + (row + 8 * r) * 4);
}

// Turns a tile's scores into exponentials; updates maxima, totals and sums.  `red` has the work-items'
// maxima.
LOCAL_INLINE void absorb_tile(const struct block *x, float s[KEY_PIECES][MMA_C],
                              float low[KEY_PIECES][MMA_C], float row_max[ROWS], float total[ROWS],
                              float sums[SUM_PIECES][MMA_C])
{
    float shift[ROWS], factor[ROWS];

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float now = max_v(row_max[r], horizontal_max(load_row_parts(x->red, r)));
        shift[r] = now == -INFINITY ? 0.0f : now;
        factor[r] = exp_nonpos_f(row_max[r] - shift[r]);
        row_max[r] = now;
        total[r] *= factor[r];
    }
#pragma unroll
    for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++) {
            const float e = exp_nonpos_f(s[n][c] - shift[c / TERMS]);
            total[c / TERMS] += e;
            mma_split(e, &s[n][c], &low[n][c]);
        }
#pragma unroll
    for (int n = 0; n < SUM_PIECES; n++)
#pragma unroll
        for (int c = 0; c < MMA_C; c++)
            sums[n][c] *= factor[c / TERMS];
}

// Absorbs a tile with scores s.
LOCAL_INLINE void add_tile(const struct block *x, int j0, float s[KEY_PIECES][MMA_C],
                           float row_max[ROWS], float total[ROWS], float sums[SUM_PIECES][MMA_C])
{
    float now[ROWS], low[KEY_PIECES][MMA_C];

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        now[r] = s[0][r * TERMS];
#pragma unroll
        for (int n = 0; n < KEY_PIECES; n++)
#pragma unroll
            for (int c = r * TERMS; c < (r + 1) * TERMS; c++)
                now[r] = max_v(now[r], s[n][c]);
    }
    share_row_parts(now, x->red);
    barrier(CLK_LOCAL_MEM_FENCE);
    absorb_tile(x, s, low, row_max, total, sums);
    add_products(s, low, rows_from(x->values, j0), 0, x->value_width, x->stage, x->box, sums);
}

// Returns whether keys beyond all lengths have a weight in some row: none of its other scores is well above MASKED_SCORE.
LOCAL_INLINE bool masked_keys_count(const struct block *x, const float row_max[ROWS])
{
    bool here = false;

    for (int r = 0; r < ROWS; r++)
        here |= x->queries.row + 8 * r < x->i0 + x->count && row_max[r] < MASKED_SCORE + COMPETING;
    return in_any(here, x->flag);
}

// Stores maxima and totals.  Turns the work-items' totals, in `red`, into the factors of the sums: 1 / the
// row's total, or 1 for partial results.
LOCAL_INLINE void store_pairs(const struct block *x, bool whole, int keep_rows,
                              const float row_max[ROWS], float total[ROWS], __global float *pairs)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int i = x->queries.row + 8 * r;
        const float sum = horizontal_sum(load_row_parts(x->red, r));
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        if ((keep_rows || !whole) && LANE_PART == 0 && i < x->i0 + x->count) {
            pairs[2 * i] = whole && row_max[r] == -INFINITY ? 0.0f : row_max[r];
            pairs[2 * i + 1] = whole ? factor : sum;
        }
        total[r] = whole ? factor : 1.0f;
    }
}

// Without weights and dropout.
KERNEL void attention_gpu_mma_fwd(FORWARD_PARAMS)
{
    __local float stage[STAGE] IN_FLOAT4S, red[4 * BR] IN_FLOAT4S;
    __local int flag;
    MMA_LOCAL(box);
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int i0 = (blocks - 1 - (int)get_group_id(1)) * BR;
    const int split = (int)get_group_id(2), count = min(BR, n_queries - i0);
    const struct visibility visible = VISIBILITY_OF(b);
    const struct block x = {
        {{HEAD_OF(q, b, h), q_t, i0 + count},
         i0 + (int)get_local_id(0) / MMA_LANES * 16 + LANE_ROW,
         width},
        {HEAD_OF(k, b, h / kv_group), k_t, n_keys},
        {HEAD_OF(v, b, h / kv_group), v_t, KEYS_SO_FAR},
        i0,
        count,
        value_width,
        BY_LENGTHS ? longest(&visible, i0, i0 + count) : n_keys,
        scale,
        softcap,
        stage,
        red,
        box,
        &flag BIAS_OF(b, h),
    };
    const bool whole = n_splits == 1;
    const int from = max(first_key(&visible, i0) / BC * BC, split * split_keys);
    const int last = end_key(&visible, i0 + count - 1);
    const int to = whole ? last : min(last, (split + 1) * split_keys);
    float sums[SUM_PIECES][MMA_C], row_max[ROWS], total[ROWS];

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        row_max[r] = -INFINITY;
        total[r] = 0.0f;
    }
    clear_sums(sums);
    for (int j0 = from; j0 < to; j0 += BC) {
        float s[KEY_PIECES][MMA_C];
        if (BY_LENGTHS && j0 >= x.reach && !masked_keys_count(&x, row_max))
            break;
        if (score_tile(&x, &visible, j0, s))
            add_tile(&x, j0, s, row_max, total, sums);
    }

    const long n_rows = (long)get_num_groups(0) * n_queries, head_row = (long)head * n_queries;
    __global float *partials = scratch + partials_at;
    __global float *pairs =
        whole ? rows + 2 * head_row : partials + 2 * (split * n_rows + head_row);
    share_row_parts(total, red);
    barrier(CLK_LOCAL_MEM_FENCE);
    store_pairs(&x, whole, keep_rows, row_max, total, pairs);
    partials += n_splits * n_rows * 2 + (split * n_rows + head_row) * value_width;
    store_sums(sums, total, x.queries.row, i0 + count, value_width,
               whole ? y + b * y_b + (long)h * value_width : partials, whole ? y_t : value_width);
}
