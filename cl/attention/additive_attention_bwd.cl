// SPDX-License-Identifier: MIT
// Gradients of additive attention.  Host side: lib/op/attention/additive_attention_bwd.c
//
//   s_ij = w . t_ij,   t_ij = tanh(q_i + k_j),   p_i = softmax(s_i)
//   ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij),   dp_ij = m_ij g_i . v_j + c_ij
//   dq_i = sum_j ds_ij w (1 - t_ij^2)    dk_j = sum_i of the same    dw = sum_ij ds_ij t_ij
//   dv_j = sum_i m_ij p_ij g_i
//
// m is the mask of dropout, made again, or 1.
//
//   Work      rows: one work-group = one query, work-item i takes keys i, i + LS ...; queries: one work-group =
//             one query, work-items share its channels; keys: one work-group = one key, likewise; sum:
//             one work-item = VW columns
//   Memory    m p and ds [B, T, S] in the scratch; [B, T, S, N] is never formed
//   Numerics  float; masked scores, a constant, have no gradient; sums in a fixed order
//
//   Macro    Meaning            Values
//   MASKING  lengths are given  0 | 2

#include "attention/attention.clh"
#include "common/dropout_row.clh"
#include "common/rows.clh"

#ifndef DROPOUT
#error "DROPOUT: weights are dropped"
#endif

static inline float score(__global const float *q, __global const float *k, __global const float *w,
                          int width)
{
    FV sum = (FV)(0.0f);

    for (int d = 0; d < width; d += VW)
        sum += load_some(w + d, width - d, 0.0f) *
               tanh_v(load_some(q + d, width - d, 0.0f) + load_some(k + d, width - d, 0.0f));
    return horizontal_sum(sum);
}

// row0: the launch's first query.  All tensors contiguous.  c: [B, T, S], read where has_c.  lengths: [batch]
// when lengths_t is 0, else [batch][n_queries].  scratch: m p [B, T, S], from ds_at on ds.  The mask's place:
// as in additive_attention_fwd.
KERNEL void additive_attention_bwd_rows(
    long row0, __global const float *restrict q, __global const float *restrict k,
    __global const float *restrict v, __global const float *restrict w,
    __global const int *restrict lengths, int lengths_t, __global const float *restrict g,
    __global const float *restrict c, int has_c, __global float *scratch, long ds_at, int n_queries,
    int n_keys, int width, int value_width, __global const int *restrict position, int has_position,
    long rows, long first_row, DROPOUT_PARAMS)
{
    GROUP_SPACE(tmp);
    const long row = row0 + get_group_id(0);
    const int b = (int)(row / n_queries), id = get_local_id(0);
    const int length = BY_LENGTHS ? clamp(lengths[lengths_t ? row : b], 0, n_keys) : n_keys;
    __global float *p = scratch + row * n_keys, *ds = p + ds_at;
    float row_max = -INFINITY, total = 0.0f, mean = 0.0f;

    for (int j = id; j < n_keys; j += LS) {
        const long key = (long)b * n_keys + j;
        p[j] = j < length ? score(q + row * width, k + key * width, w, width) : MASKED_SCORE;
        row_max = max_v(p[j], row_max);
    }
    row_max = GROUP_MAX(row_max, tmp);
    for (int j = id; j < n_keys; j += LS) {
        const long key = (long)b * n_keys + j;
        ds[j] = row_dot(g + row * value_width, v + key * value_width, value_width);
    }
#if DROPOUT
    const struct dropout dropped = DROPOUT_OF;
    const long mask_row = (has_position ? position[0] * rows : 0) + first_row + row;
    const ulong mask_block = (ulong)(mask_row * ((n_keys + 3) / 4));
    drop_row(&dropped, mask_block, ds, n_keys);
#endif
    for (int j = id; j < n_keys; j += LS) {
        p[j] = exp_nonpos_f(p[j] - row_max);
        if (has_c)
            ds[j] += c[row * n_keys + j];
        total += p[j];
        mean += p[j] * ds[j];
    }
    total = GROUP_SUM(total, tmp);
    mean = GROUP_SUM(mean, tmp) / total;
    for (int j = id; j < n_keys; j += LS) {
        p[j] /= total;
        ds[j] = j < length ? p[j] * (ds[j] - mean) : 0.0f;
    }
#if DROPOUT
    drop_row(&dropped, mask_block, p, n_keys);
#endif
}

// parts: [B, T, N], each query's share of dw, from parts_at on.
KERNEL void additive_attention_bwd_queries(long row0, __global const float *restrict q,
                                           __global const float *restrict k,
                                           __global const float *restrict w,
                                           __global float *scratch, long ds_at, long parts_at,
                                           __global float *restrict dq, int n_queries, int n_keys,
                                           int width)
{
    const long row = row0 + get_group_id(0), first_key = row / n_queries * n_keys;
    __global const float *ds = scratch + ds_at + row * n_keys;
    __global float *part = scratch + parts_at + row * width;

    for (int d = VW * (int)get_local_id(0); d < width; d += VW * LS) {
        const int n = width - d;
        const FV query = load_some(q + row * width + d, n, 0.0f);
        FV sum = (FV)(0.0f), weights = (FV)(0.0f);
        for (int j = 0; j < n_keys; j++) {
            const FV t = tanh_v(query + load_some(k + (first_key + j) * width + d, n, 0.0f));
            sum += ds[j] * (1.0f - t * t);
            weights += ds[j] * t;
        }
        store_some(sum * load_some(w + d, n, 0.0f), dq + row * width + d, n);
        store_some(weights, part + d, n);
    }
}

KERNEL void additive_attention_bwd_keys(long key0, __global const float *restrict q,
                                        __global const float *restrict k,
                                        __global const float *restrict w,
                                        __global const float *restrict g,
                                        __global const float *restrict scratch, long ds_at,
                                        __global float *restrict dk, __global float *restrict dv,
                                        int n_queries, int n_keys, int width, int value_width)
{
    const long key = key0 + get_group_id(0), b = key / n_keys, first = b * n_queries;
    __global const float *p = scratch + first * n_keys + key % n_keys, *ds = p + ds_at;

    for (int d = VW * (int)get_local_id(0); d < width; d += VW * LS) {
        const int n = width - d;
        const FV own = load_some(k + key * width + d, n, 0.0f);
        FV sum = (FV)(0.0f);
        for (int i = 0; i < n_queries; i++) {
            const FV t = tanh_v(own + load_some(q + (first + i) * width + d, n, 0.0f));
            sum += ds[(long)i * n_keys] * (1.0f - t * t);
        }
        store_some(sum * load_some(w + d, n, 0.0f), dk + key * width + d, n);
    }
    for (int e = VW * (int)get_local_id(0); e < value_width; e += VW * LS) {
        const int n = value_width - e;
        FV sum = (FV)(0.0f);
        for (int i = 0; i < n_queries; i++)
            sum += p[(long)i * n_keys] * load_some(g + (first + i) * value_width + e, n, 0.0f);
        store_some(sum, dv + key * value_width + e, n);
    }
}

// dw: [N], the sum of `rows` parts.
KERNEL void additive_attention_bwd_sum(__global const float *restrict scratch, long parts_at,
                                       long rows, __global float *restrict dw, int width)
{
    const int d = VW * (int)get_global_id(0);
    FV sum = (FV)(0.0f);

    if (d >= width)
        return;
    for (long i = 0; i < rows; i++)
        sum += load_some(scratch + parts_at + i * width + d, width - d, 0.0f);
    store_some(sum, dw + d, width - d);
}
