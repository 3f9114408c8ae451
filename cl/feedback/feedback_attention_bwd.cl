// SPDX-License-Identifier: MIT
// Backward pass of attention of one query per batch entry to the memories before it.  Host side:
// lib/op/feedback/feedback_attention_bwd.c
//
//   joint   s_j = (q + u) . (k_j + U_j) * scale
//   split   s_j = ((q + u) . k_j + q . U_j + w_j) * scale,      p = softmax(s),  y = sum_j m_j p_j v_j
//
//   dp_j = m_j dy . v_j + dp of the weights,   ds_j = p_j (dp_j - sum_i p_i dp_i) scale
//   dq = sum_j ds_j (k_j + U_j),   dk_j = ds_j (q + u),   dv_j = m_j p_j dy
//   dU_j = sum_b ds_j (q + u), split: ds_j q;   dw_j = sum_b ds_j
//   du = sum_b dq, split: sum_b sum_j ds_j k_j
//
//   m: the dropout mask, computed again, or 1
//
//   Work      query: a work-group takes one head of one batch entry; memory: `per_group` memories of one;
//             positions: one head of one position; one more work-group per head takes du
//   Memory    `scores` holds m p and ds, [2][batch][heads][memories]; each is read once more
//   Numerics  the softmax is relative to the largest score; without memories gradients are 0; sums over
//             batch entries and memories are in order
//
//   Macro  Meaning             Values
//   SPLIT  split scores        0, 1

#include "common/dropout_row.clh"
#include "common/math.clh"
#include "common/rows.clh"

#if !defined SPLIT || !defined DROPOUT
#error "SPLIT and DROPOUT must be defined"
#endif

static inline int count_memories(__global const int *position, int growing, int n_memories)
{
    return growing ? clamp(position[0], 0, n_memories) : n_memories;
}

// (q + u) . k + q . U, or (q + u) . (k + U)
static inline float compute_score(__global const float *q, __global const float *u,
                                  __global const float *k, __global const float *place, int width)
{
    FV all = (FV)(0.0f);

    for (int c = 0; c < width; c += VW) {
        const int left = width - c;
        const FV one = load_some(q + c, left, 0.0f), both = one + load_some(u + c, left, 0.0f);
        const FV key = load_some(k + c, left, 0.0f), at = load_some(place + c, left, 0.0f);
#if SPLIT
        all += both * key + one * at;
#else
        all += both * (key + at);
#endif
    }
    return horizontal_sum(all);
}

// q, dy: [B, H width], rows of q q_stride apart; keys, values: element (j, b, h, c) at start + j *
// memory + b * batch + h * head + c; places: [P, H, width]; u: [H, width]; place_bias: [P, H]
// dweights: [n_memories, B, H], read if has_dweights
// dq, du_parts: [B, H width]; scores: [2, B, H, n_memories]
KERNEL void feedback_attention_bwd_query(
    __global const float *restrict q, long q_start, long q_stride,
    __global const float *restrict keys, long key_start, long key_memory, long key_batch,
    long key_head, __global const float *restrict values, long value_start, long value_memory,
    long value_batch, long value_head, __global const float *restrict places,
    __global const float *restrict u, __global const float *restrict place_bias,
    __global const int *restrict position, __global const float *restrict dy,
    __global const float *restrict dweights, int has_dweights, __global float *restrict dq,
    __global float *scores, __global float *restrict du_parts, int growing, int n_memories,
    int n_places, int width, float scale, DROPOUT_PARAMS, int batch_begin, int batch_total)
{
    GROUP_SPACE(tmp);
    const int lid = (int)get_local_id(0);
    const int h = (int)get_group_id(0), n_heads = (int)get_num_groups(0);
    const long b = get_group_id(1), n_rows = (long)get_num_groups(1) * n_heads;
    const long row = b * n_heads + h, place_stride = (long)n_heads * width;
    const int count = count_memories(position, growing, n_memories);
    const int first_place = n_places - count;
    __global const float *query = q + q_start + b * q_stride + (long)h * width;
    __global const float *k = keys + key_start + b * key_batch + h * key_head;
    __global const float *v = values + value_start + b * value_batch + h * value_head;
    __global const float *at = places + first_place * place_stride + (long)h * width;
    __global float *p = scores + row * n_memories, *ds = p + n_rows * n_memories;
    float row_max = -INFINITY, total = 0.0f, mean = 0.0f;

    // Pass 1: scores, and the largest.
    for (int j = lid; j < count; j += LS) {
        float s = compute_score(query, u + (long)h * width, k + j * key_memory,
                                at + j * place_stride, width);
#if SPLIT
        s += place_bias[(long)(first_place + j) * n_heads + h];
#endif
        p[j] = s * scale;
        row_max = fmax(row_max, s * scale);
    }
    row_max = GROUP_MAX(row_max, tmp);

#if DROPOUT
    const struct dropout dropout = DROPOUT_OF;
    const long entry = (growing ? count : 0) * (long)batch_total + batch_begin + b;
    const ulong block = (ulong)((entry * n_heads + h) * ((n_memories + 3) / 4));
    for (int j = lid; j < count; j += LS)
        ds[j] = row_dot(dy + row * width, v + j * value_memory, width);
    drop_row(&dropout, block, ds, count);
#endif

    // Pass 2: exponentials, gradients of the weights, and sums.
    for (int j = lid; j < count; j += LS) {
        const float e = exp_nonpos_f(p[j] - row_max);
#if DROPOUT
        const float of_y = ds[j];
#else
        const float of_y = row_dot(dy + row * width, v + j * value_memory, width);
#endif
        const float dp = of_y + (has_dweights ? dweights[j * n_rows + row] : 0.0f);
        p[j] = e;
        ds[j] = dp;
        total += e;
        mean += e * dp;
    }
    total = GROUP_SUM(total, tmp);
    mean = GROUP_SUM(mean, tmp);
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
    mean *= factor;

    // Pass 3: the gradients of the scores.
    for (int j = lid; j < count; j += LS) {
        p[j] *= factor;
        ds[j] = p[j] * (ds[j] - mean) * scale;
    }
#if DROPOUT
    drop_row(&dropout, block, p, count);
#endif
#if LS > 1
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif

    // Pass 4: the query's gradient, column by column.
    for (int c = VW * lid; c < width; c += VW * LS) {
        const int left = width - c;
        FV by_key = (FV)(0.0f), by_place = (FV)(0.0f);
        for (int j = 0; j < count; ++j) {
            by_key += ds[j] * load_some(k + j * key_memory + c, left, 0.0f);
            by_place += ds[j] * load_some(at + j * place_stride + c, left, 0.0f);
        }
        store_some(by_key + by_place, dq + row * width + c, left);
        store_some(SPLIT ? by_key : by_key + by_place, du_parts + row * width + c, left);
    }
}

// dkeys, dvalues: laid out like keys and values.  If `growing`, each step adds to the memories present;
// the first backward step, with n_memories, overwrites unless `adds`.
KERNEL void feedback_attention_bwd_memory(
    __global const float *restrict q, long q_start, long q_stride, __global const float *restrict u,
    __global const float *restrict scores, __global const float *restrict dy,
    __global const int *restrict position, __global float *dkeys, long key_start, long key_memory,
    long key_batch, long key_head, __global float *dvalues, long value_start, long value_memory,
    long value_batch, long value_head, int growing, int adds, int n_memories, int per_group,
    int width)
{
    const int lid = (int)get_local_id(0);
    const int h = (int)get_group_id(0), n_heads = (int)get_num_groups(0);
    const long b = get_group_id(1), n_rows = (long)get_num_groups(1) * n_heads;
    const int first = (int)get_group_id(2) * per_group;
    const long row = b * n_heads + h;
    const int count = count_memories(position, growing, n_memories);
    const int continues = adds || count < n_memories;
    const int end = min(first + per_group, count);
    __global const float *query = q + q_start + b * q_stride + (long)h * width;

    for (int j = first; j < end; ++j) {
        const float p = scores[row * n_memories + j], ds = scores[(n_rows + row) * n_memories + j];
        __global float *dk = dkeys + key_start + b * key_batch + h * key_head + j * key_memory;
        __global float *dv =
            dvalues + value_start + b * value_batch + h * value_head + j * value_memory;

        for (int c = VW * lid; c < width; c += VW * LS) {
            const int left = width - c;
            FV key = ds * (load_some(query + c, left, 0.0f) +
                           load_some(u + (long)h * width + c, left, 0.0f));
            FV value = p * load_some(dy + row * width + c, left, 0.0f);
            if (continues) {
                key += load_some(dk + c, left, 0.0f);
                value += load_some(dv + c, left, 0.0f);
            }
            store_some(key, dk + c, left);
            store_some(value, dv + c, left);
        }
    }
}

// dplaces: [P, H, width], dplace_bias: [P, H], du: [H, width].  Work-group (h, P) computes du of head h.
KERNEL void feedback_attention_bwd_positions(
    __global const float *restrict q, long q_start, long q_stride, __global const float *restrict u,
    __global const float *restrict scores, __global const float *restrict du_parts,
    __global const int *restrict position, __global float *restrict dplaces,
    __global float *restrict du, __global float *restrict dplace_bias, int growing, int n_batch,
    int n_memories, int n_places, int width)
{
    const int lid = (int)get_local_id(0);
    const int h = (int)get_group_id(0), n_heads = (int)get_num_groups(0);
    const int place = (int)get_group_id(1);
    const long n_rows = (long)n_batch * n_heads;
    const int count = count_memories(position, growing, n_memories);
    const int j = place - (n_places - count), is_used = j >= 0 && place < n_places;
    __global const float *ds = scores + n_rows * n_memories + (is_used ? j : 0);

    for (int c = VW * lid; c < width; c += VW * LS) {
        const int left = width - c;
        const FV bias = SPLIT ? (FV)(0.0f) : load_some(u + (long)h * width + c, left, 0.0f);
        FV sum = (FV)(0.0f);
        for (int b = 0; b < n_batch; ++b) {
            const long row = (long)b * n_heads + h;
            if (place == n_places)
                sum += load_some(du_parts + row * width + c, left, 0.0f);
            else if (is_used)
                sum += ds[row * n_memories] *
                       (load_some(q + q_start + b * q_stride + (long)h * width + c, left, 0.0f) +
                        bias);
        }
        store_some(sum,
                   (place == n_places ? du : dplaces + (long)place * n_heads * width) +
                       (long)h * width + c,
                   left);
    }
#if SPLIT
    if (lid == 0 && place < n_places) {
        float sum = 0.0f;
        for (int b = 0; b < n_batch && is_used; ++b)
            sum += ds[((long)b * n_heads + h) * n_memories];
        dplace_bias[(long)place * n_heads + h] = sum;
    }
#endif
}
