// SPDX-License-Identifier: MIT
// Attention of one position over the keys so far, the keys shared out to several work-groups, and a
// second pass that merges what they find.  Host side: lib/op/attention/attention_split.c
//
//   plain    s_j = scale * (q . k_j)
//   joint    s_j = scale * ((q + u) . (k_j + U_j))
//   split    s_j = scale * ((q + u) . k_j + q . U_j + w_j)
//   y = sum_j softmax(s)_j v_j
//
//   Work      fwd: a work-group takes a part of the keys of one head of one batch entry, LS at a time:
//             KEY_LANES work-items a key, then a work-item a column; merge: a work-group takes one head
//   Memory    reads keys and values once, neighbours at neighbouring work-items; a part leaves its
//             largest score, the sum of its exponentials and its sums of values [2 + width]
//   Numerics  float; exponentials relative to a part's largest score so far, then to the largest
//
//   Macro      Meaning                                         Values
//   FLOAT4     rows are whole, aligned vectors of four         0, 1
//   STORES     this position's key and value are stored first  0, 1
//   SLOTS      with STORES: a position for each batch entry    0, 1
//   RING       with STORES: position t is in row t mod limit, and all rows are read; without SLOPES   0, 1
//   PLACES     relative positions: none, joint, split          0, 1, 2
//   SLOPES     slopes times distances are added to scores      0, 1
//   CACHE_TYPE as in stored.clh; 3: rows in 8 bits             0, 1, 2, 3

#include "common/attention_merge.clh"

#include "attention/head_row.clh"
#include "common/softcap.clh"

#if !defined LS || !defined FLOAT4 || !defined STORES || !defined SLOTS || !defined PLACES
#error "LS, FLOAT4, STORES, SLOTS and PLACES must be defined"
#endif
#if !defined CACHE_TYPE || !defined SLOPES || !defined RING
#error "CACHE_TYPE, SLOPES and RING must be defined"
#endif

#define KEY_LANES    (LS < 8 ? LS : 8) // work-items that share a key
#define KEYS_AT_ONCE (LS / KEY_LANES)

// The keys of batch entry b, `most` at most.
#define COUNT_KEYS(position, b, most)                                                              \
    (STORES ? clamp((position)[SLOTS ? (b) : 0], SLOTS ? -1 : 0, (most)-1) + 1                     \
            : clamp((position)[0], 0, most))

#if FLOAT4
#define UNIT 4
typedef float4 unit;
#define LOAD_UNIT     load_stored_4
#define LOCAL_UNIT(p) vload4(0, p)
#define UNIT_SUM(s)   (((s).x + (s).y) + ((s).z + (s).w))
#else
#define UNIT          1
typedef float unit;
#define LOAD_UNIT     load_stored_one
#define LOCAL_UNIT(p) (*(p))
#define UNIT_SUM(s)   (s)
#endif

// This work-item's share of the products with keys r KEYS_AT_ONCE + its own: dots[key][lane].  query:
// q and q + u in local memory, `width` each; rows beyond the last count as the last.
LOCAL_INLINE void share_of_products(__local const float *query, int width,
                                    __global const void *keys, long key_step,
                                    __global const float *places, long place_step, int n,
                                    __local float *dots)
{
    const int lid = (int)get_local_id(0), lane = lid % KEY_LANES, key = lid / KEY_LANES;
    unit all[KEY_LANES];

#pragma unroll
    for (int r = 0; r < KEY_LANES; ++r)
        all[r] = (unit)(0.0f);
    for (int c = UNIT * lane; c < width; c += UNIT * KEY_LANES) {
        const unit qu = LOCAL_UNIT(query + width + c);
#if PLACES == 2
        const unit q = LOCAL_UNIT(query + c);
#endif
#pragma unroll
        for (int r = 0; r < KEY_LANES; ++r) {
            const int j = min(r * KEYS_AT_ONCE + key, n - 1);
            const unit k = LOAD_UNIT(keys, j * key_step + c, CACHE_TYPE);
#if PLACES == 0
            all[r] += qu * k;
#elif PLACES == 1
            all[r] += qu * (k + LOAD_UNIT(places, j * place_step + c, STORED_FLOAT));
#else
            all[r] += qu * k + q * LOAD_UNIT(places, j * place_step + c, STORED_FLOAT);
#endif
        }
    }
#pragma unroll
    for (int r = 0; r < KEY_LANES; ++r)
        dots[r * LS + lid] = UNIT_SUM(all[r]);
}

// The largest of `n` scores and `before`.
LOCAL_INLINE float largest_of(__local const float *scores, int n, float before)
{
    float m = before;
    for (int j = 0; j < n; ++j)
        m = fmax(scores[j], m);
    return m;
}

#define VALUE(i) load_stored_one(v, (i)*step, CACHE_TYPE)

// One column of values, over n keys with these exponentials.
LOCAL_INLINE float sum_of_column(__local const float *e, __global const void *v, long step, int n)
{
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    int j = 0;
    for (; j + 8 <= n; j += 8, v = stored_at(v, 8 * step, CACHE_TYPE)) {
        a0 += e[j] * VALUE(0), a1 += e[j + 1] * VALUE(1);
        a2 += e[j + 2] * VALUE(2), a3 += e[j + 3] * VALUE(3);
        a0 += e[j + 4] * VALUE(4), a1 += e[j + 5] * VALUE(5);
        a2 += e[j + 6] * VALUE(6), a3 += e[j + 7] * VALUE(7);
    }
    for (; j < n; ++j, v = stored_at(v, step, CACHE_TYPE))
        a0 += e[j] * VALUE(0);
    return (a0 + a1) + (a2 + a3);
}

// q, k, v: rows of all heads, `_stride` apart per batch entry; kv_group query heads share a head of k and v, whose
// position each of them stores alike
// keys, values: element (j, b, h, c) at start + j * memory + b * batch + h * head + c, j below limit
// places: [P, H, width], place_bias: [P, H], of which the last rows are those of the newest keys; u:
// [H, width]
// position: [1], with SLOTS [batch].  There are position + 1 keys with STORES, `position` without; attention sees the last
// `span` of them.  With SLOTS, a negative position stores nothing and has no keys
// parts: [batch, H, n_parts, 2 + width]; query: 2 width floats, without places the first for a key, then a value
KERNEL void attention_split_gpu_fwd(
    __global const float *restrict q, long q_start, long q_stride, __global const float *restrict k,
    long k_start, long k_stride, __global const float *restrict v, long v_start, long v_stride,
    __global void *keys, long key_start, long key_memory, long key_batch, long key_head,
    __global void *values, long value_start, long value_memory, long value_batch, long value_head,
    __global const float *restrict places, __global const float *restrict u,
    __global const float *restrict place_bias, __global const int *restrict position,
    __global float *restrict parts, int n_heads, int kv_group, int n_places, int width, int limit,
    int span, float scale, float softcap, __local float *query,
    __global const float *restrict slopes, HEAD_FORMS)
{
    __local float dots[LS * KEY_LANES], scores[LS], e[LS];
    const int lid = (int)get_local_id(0), row = (int)get_group_id(0);
    const int n_parts = (int)get_num_groups(1), part = (int)get_group_id(1);
    const int b = row / n_heads, h = row - b * n_heads, kv_h = h / kv_group;
    const int count = COUNT_KEYS(position, b, limit);
    const int hidden = max(0, count - span), per_part = keys_of_part(count - hidden, n_parts);
    const int first = hidden + part * per_part, end = min(first + per_part, count);
#if RING
    const int t = max(position[SLOTS ? b : 0], SLOTS ? -1 : 0);
#else
    const int t = count - 1;
#endif
    const long head = (long)h * width, kv_head = (long)kv_h * width;
    const long place_step = (long)n_heads * width;

#if CACHE_TYPE == STORED_Q8
    __local float scaled[LS];
    const long scale_at = Q8_SCALES(n_heads / kv_group * width) + 4 * kv_h - kv_head; // of the head
#else
    const long scale_at = 0;
    __local float *const scaled = e;
    (void)kv_head, (void)scale_at; // what STORES alone uses
#endif
    parts += ((long)row * n_parts + part) * (2 + width);
    keys =
        (__global void *)stored_at(keys, key_start + b * key_batch + kv_h * key_head, CACHE_TYPE);
    values = (__global void *)stored_at(values, value_start + b * value_batch + kv_h * value_head,
                                        CACHE_TYPE);
#if STORES
    const int written = RING ? t % limit : t;
    if (first <= written && written < end) {
        const long key = written * key_memory, value = written * value_memory;
        load_head(k + k_start + b * k_stride + kv_head, width, query);
        prepare_head(query, width, HEAD_NORM & 2, key_norm, eps, table, n_positions, t, pairs, e);
        store_head(query, width, keys, key, scale_at);
        HEAD_BARRIER();
        load_head(v + v_start + b * v_stride + kv_head, width, query);
        store_head(query, width, values, value, scale_at);
    }
#endif
    load_head(q + q_start + b * q_stride + head, width, query + width);
    prepare_head(query + width, width, HEAD_NORM & 1, query_norm, eps, table, n_positions, t, pairs,
                 e);
#if PLACES
    for (int c = lid; c < width; c += LS) {
        query[c] = query[width + c];
        query[width + c] += u[head + c];
    }
#endif
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);

    float largest = -INFINITY, total = 0.0f;
    for (int j0 = first; j0 < end; j0 += LS) {
        const int n = min(LS, end - j0);
        const long place = n_places - count + j0;
        share_of_products(query, width, stored_at(keys, j0 * key_memory, CACHE_TYPE), key_memory,
                          places + place * place_step + head, place_step, n, dots);
        barrier(CLK_LOCAL_MEM_FENCE);
        float s = 0.0f;
        for (int i = 0; i < KEY_LANES; ++i)
            s += dots[lid * KEY_LANES + i];
#if CACHE_TYPE == STORED_Q8
        s *= Q8_SCALE_AT(keys, (j0 + min(lid, n - 1)) * key_memory + scale_at);
#endif
#if PLACES == 2
        s += place_bias[(place + min(lid, n - 1)) * n_heads + h];
#endif
        scores[lid] = CAP_SCORE(f, scale * s, softcap);
#if SLOPES
        scores[lid] += slopes[h] * (float)(j0 + lid - (count - 1));
#endif
        barrier(CLK_LOCAL_MEM_FENCE);

        const float larger = largest_of(scores, n, largest);
        const float base = larger == -INFINITY ? 0.0f : larger;
        const float decay = exp_nonpos_f(largest - base);
        largest = larger;
        e[lid] = exp_nonpos_f(scores[lid] - base);
#if CACHE_TYPE == STORED_Q8
        scaled[lid] =
            e[lid] * Q8_SCALE_AT(values, (j0 + min(lid, n - 1)) * value_memory + scale_at);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);

        float sum = 0.0f;
        for (int j = 0; j < n; ++j)
            sum += e[j];
        total = total * decay + sum;
        for (int c = lid; c < width; c += LS) {
            const float now = sum_of_column(
                scaled, stored_at(values, j0 * value_memory + c, CACHE_TYPE), value_memory, n);
            parts[2 + c] = (j0 == first ? 0.0f : parts[2 + c] * decay) + now;
        }
    }
    if (lid == 0) {
        parts[0] = largest;
        parts[1] = total;
    }
}

// y: [batch, H, width]; weights: PART_FLOATS n_parts floats; n_heads is read with SLOTS alone
KERNEL void attention_split_gpu_merge_fwd(__global const float *restrict parts,
                                          __global const int *restrict position,
                                          __global float *restrict y, int n_heads, int n_parts,
                                          int width, int span, __local float *weights)
{
    const long row = (long)get_group_id(0);
    const int count = COUNT_KEYS(position, row / n_heads, span);
    const int n = used_parts(count, n_parts);

    parts += row * n_parts * (2 + width);
    weigh_parts(parts, 1, n_parts, n, width, weights);
    for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
        store_some(merge_parts(weights, parts + 2 + c, n, width, width - c), y + row * width + c,
                   width - c);
}
