// SPDX-License-Identifier: MIT
// Attention of one query per batch entry to the memories before it.  Host side:
// lib/op/feedback/feedback_attention.c
//
//   joint   s_j = (q + u) . (k_j + U_j) * scale
//   split   s_j = ((q + u) . k_j + q . U_j + w_j) * scale
//   y = sum_j m_j softmax(s)_j v_j,   m the dropout mask, or 1
//
//   Work      a work-group takes one head of one batch entry: the scores of BLOCK memories, a work-item
//             SCORED_TOGETHER at a time, then their values, work-item i vectors i, i + LS ... of the columns
//   Memory    reads keys, values and positions once; y holds the running sum
//   Numerics  online softmax: sums are relative to the largest score so far; without memories y is 0
//
//   Macro     Meaning                                 Values
//   HAS_TAIL  the width is no multiple of VW          0, 1
//   SPLIT     split scores                            0, 1
//   WEIGHTS   the weights are an output too           0, 1

#include "common/dropout_row.clh"
#include "common/math.clh"
#include "common/reduce.clh"
#include "common/stored.clh"
#if VW > 1
#include "common/transpose.clh"
#endif

#if !defined HAS_TAIL || !defined SPLIT || !defined WEIGHTS
#error "HAS_TAIL, SPLIT and WEIGHTS must be defined"
#endif
#if !defined DROPOUT || !defined CACHE_TYPE
#error "DROPOUT and CACHE_TYPE must be defined"
#endif

// BLOCK memories are scored before their values are read: on a CPU one head's values of a block fit the L1 cache; on
// a GPU every work-item scores at least one memory.
#define SCORED_TOGETHER VW
#define BLOCK           (VW > 1 ? 64 : 256)

// One head's query q and bias u, `width` floats each.
struct query {
    __global const float *q, *u;
    int width;
};

// Adds the products of columns c .. c + min(left, VW) of a query with rows of keys and positions.
static inline void add_dot_products(const struct query *query, __global const void *keys,
                                    __global const float *places, const long *key,
                                    const long *place, int c, int left, FV *all)
{
    const FV q = load_some(query->q + c, left, 0.0f);
    const FV qu = q + load_some(query->u + c, left, 0.0f);
#pragma unroll
    for (int i = 0; i < SCORED_TOGETHER; ++i) {
        const FV k = load_stored_some(keys, key[i] + c, left, CACHE_TYPE);
        const FV p = load_some(places + place[i] + c, left, 0.0f);
#if SPLIT
        all[i] += qu * k + q * p;
#else
        all[i] += qu * (k + p);
#endif
    }
}

// The products with rows j .. j + SCORED_TOGETHER - 1; rows from n on repeat the last one.
static inline FV compute_dot_products(const struct query *query, __global const void *keys,
                                      long key_stride, __global const float *places,
                                      long place_stride, int j, int n)
{
    FV all[SCORED_TOGETHER];
    long key[SCORED_TOGETHER], place[SCORED_TOGETHER];
    int c = 0;

#pragma unroll
    for (int i = 0; i < SCORED_TOGETHER; ++i) {
        const int row = min(j + i, n - 1);
        key[i] = row * key_stride;
        place[i] = row * place_stride;
        all[i] = (FV)(0.0f);
    }
    for (; c + VW <= query->width; c += VW)
        add_dot_products(query, keys, places, key, place, c, VW, all);
#if HAS_TAIL
    add_dot_products(query, keys, places, key, place, c, query->width - c, all);
#endif
#if SCORED_TOGETHER == 1
    return all[0];
#else
    return transpose_reduce(all);
#endif
}

// y = y * decay + sum over j < n of e[j] values[j], for this work-item's columns of `width`.
LOCAL_INLINE void add_values(__global float *y, int width, float decay, __local const float *e,
                             __global const void *values, long stride, int n)
{
    int c = VW * (int)get_local_id(0);
    for (; c + VW <= width; c += VW * LS) {
        __global const void *v = stored_at(values, c, CACHE_TYPE);
        FV a0 = VLOAD(y + c) * decay;
        FV a1 = (FV)(0.0f), a2 = (FV)(0.0f), a3 = (FV)(0.0f);
        int j = 0;
        for (; j + 4 <= n; j += 4, v = stored_at(v, 4 * stride, CACHE_TYPE)) {
            a0 += e[j] * load_stored(v, 0, CACHE_TYPE);
            a1 += e[j + 1] * load_stored(v, stride, CACHE_TYPE);
            a2 += e[j + 2] * load_stored(v, 2 * stride, CACHE_TYPE);
            a3 += e[j + 3] * load_stored(v, 3 * stride, CACHE_TYPE);
        }
        for (; j < n; ++j, v = stored_at(v, stride, CACHE_TYPE))
            a0 += e[j] * load_stored(v, 0, CACHE_TYPE);
        VSTORE((a0 + a1) + (a2 + a3), y + c);
    }
    if (c < width) {
        const int left = width - c;
        FV all = load_part(y + c, left, 0.0f) * decay;
        for (int j = 0; j < n; ++j)
            all += e[j] * load_stored_part(values, c + j * stride, left, CACHE_TYPE);
        store_part(all, y + c, left);
    }
}

static inline void scale_columns(__global float *y, int width, float factor)
{
    for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
        store_some(load_some(y + c, width - c, 0.0f) * factor, y + c, width - c);
}

// The largest of this work-item's scores[0 .. n), n a multiple of VW.
LOCAL_INLINE float find_largest_score(__local const float *scores, int n)
{
    FV row_max = (FV)(-INFINITY);
    for (int j = VW * (int)get_local_id(0); j < n; j += VW * LS)
        row_max = max_v(VLOAD(scores + j), row_max);
    return horizontal_max(row_max);
}

// Replaces this work-item's scores[j] by exp(scores[j] - row_max); returns their sum.
LOCAL_INLINE float exponentiate_scores(__local float *scores, int n, float row_max)
{
    FV sum = (FV)(0.0f);
    for (int j = VW * (int)get_local_id(0); j < n; j += VW * LS) {
        const FV e = exp_nonpos_v(VLOAD(scores + j) - row_max);
        VSTORE(e, scores + j);
        sum += e;
    }
    return horizontal_sum(sum);
}

// q: [B, H width], rows q_stride apart; keys, values: element (j, b, h, c) at start + j * memory +
// b * batch + h * head + c; places: [P, H, width]; u: [H, width]; place_bias: [P, H]
// position: [1], read if `growing`: the memories present, and the row of the mask [positions, B, H, n_memories]
// y: [B, H width]; weights: [n_memories, B, H]
KERNEL void
feedback_attention_fwd(__global const float *restrict q, long q_start, long q_stride,
                       __global const void *restrict keys, long key_start, long key_memory,
                       long key_batch, long key_head, __global const void *restrict values,
                       long value_start, long value_memory, long value_batch, long value_head,
                       __global const float *restrict places, __global const float *restrict u,
                       __global const float *restrict place_bias,
                       __global const int *restrict position, __global float *restrict y,
                       __global float *restrict weights, int growing, int n_memories, int n_places,
                       int width, float scale, DROPOUT_PARAMS, int batch_begin, int batch_total)
{
    __local float scores[BLOCK];
    GROUP_SPACE(tmp);
    const int lid = (int)get_local_id(0);
    const int h = (int)get_group_id(0), n_heads = (int)get_num_groups(0);
    const long b = get_group_id(1);
#if WEIGHTS
    const long n_rows = (long)get_num_groups(1) * n_heads;
#endif
    const int count = growing ? clamp(position[0], 0, n_memories) : n_memories;
    const long place_stride = (long)n_heads * width, place = n_places - count;
    const struct query query = {q + q_start + b * q_stride + (long)h * width, u + (long)h * width,
                                width};
    float row_max = -INFINITY, sum = 0.0f;
#if DROPOUT
    const struct dropout dropout = DROPOUT_OF;
    const long entry = (growing ? count : 0) * (long)batch_total + batch_begin + b;
    const long mask_row = entry * n_heads + h;
    const long mask_block = mask_row * ((n_memories + 3) / 4);
#endif

    keys = stored_at(keys, key_start + b * key_batch + h * key_head, CACHE_TYPE);
    values = stored_at(values, value_start + b * value_batch + h * value_head, CACHE_TYPE);
    places += place * place_stride + (long)h * width;
    place_bias += SPLIT ? place * n_heads + h : 0;
    y += b * place_stride + (long)h * width;
    weights += b * n_heads + h;
    for (int c = VW * lid; c < width; c += VW * LS)
        store_some((FV)(0.0f), y + c, width - c);

    for (int first = 0; first < count; first += BLOCK) {
        const int n = min(BLOCK, count - first), padded = (n + VW - 1) / VW * VW;

        // Pass 1: scores.
        for (int j = SCORED_TOGETHER * lid; j < n; j += SCORED_TOGETHER * LS) {
            VSTORE(scale * compute_dot_products(
                               &query, stored_at(keys, first * key_memory, CACHE_TYPE), key_memory,
                               places + first * place_stride, place_stride, j, n),
                   scores + j);
            for (int i = j; i < min(j + SCORED_TOGETHER, n); ++i) {
#if SPLIT
                scores[i] += scale * place_bias[(long)(first + i) * n_heads];
#endif
#if WEIGHTS
                weights[(first + i) * n_rows] = scores[i];
#endif
            }
        }
        for (int j = n + lid; j < padded; j += LS)
            scores[j] = -INFINITY;
#if LS > 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif

        // Pass 2: exponentials, relative to the largest score so far.
        const float larger = fmax(row_max, GROUP_MAX(find_largest_score(scores, padded), tmp));
        const float base = larger == -INFINITY ? 0.0f : larger;
        const float decay = exp_nonpos_f(row_max - base);
        sum = sum * decay + GROUP_SUM(exponentiate_scores(scores, padded, base), tmp);
        row_max = larger;
#if DROPOUT
        drop_scores(&dropout, (ulong)(mask_block + first / 4), scores, n);
#if LS > 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#endif

        // Pass 3: values.
        add_values(y, width, decay, scores, stored_at(values, first * value_memory, CACHE_TYPE),
                   value_memory, n);
#if LS > 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }

    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    scale_columns(y, width, factor);
#if WEIGHTS
#if LS > 1
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    const float base = row_max == -INFINITY ? 0.0f : row_max;
    for (int j = lid; j < count; j += LS)
        weights[j * n_rows] = exp_nonpos_f(weights[j * n_rows] - base) * factor;
#endif
}
