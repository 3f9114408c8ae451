// SPDX-License-Identifier: MIT
// Additive attention.  Host side: lib/op/attention/additive_attention.c
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over j of w . tanh(q_i + k_j)
//
// m is the mask of dropout, or 1; the weights that are stored are p.
//
//   Work      one work-group = one query; work-item i scores keys i, i + LS ... of a chunk
//   Memory    reads the keys and values before the query's length once; `sums` [value_width] in
//             local memory; with WEIGHTS the scores wait in the weights
//   Numerics  float, online softmax; keys at or beyond the length score -1e6, a number that
//             competes: they are read only where the others score as low or are none
//
//   Macro    Meaning            Values
//   MASKING  lengths are given  0 | 2
//   WEIGHTS  p is stored too    0 | 1

#include "attention/attention.clh"
#include "common/attention_row.clh"
#include "common/dropout_row.clh"

#if !defined(WEIGHTS) || !defined(DROPOUT)
#error "WEIGHTS: p is stored too; DROPOUT: weights are dropped"
#endif

static inline float score(__global const float *q, __global const float *k, __global const float *w,
                          int width)
{
    FV sum_v = (FV)(0.0f);
    int d = 0;

    for (; d + VW <= width; d += VW)
        sum_v += VLOAD(w + d) * tanh_v(VLOAD(q + d) + VLOAD(k + d));
    if (d < width)
        sum_v += load_part(w + d, width - d, 0.0f) *
                 tanh_v(load_part(q + d, width - d, 0.0f) + load_part(k + d, width - d, 0.0f));
    return horizontal_sum(sum_v);
}

// row0: the launch's first query.  Rows of q, k, v: `_stride` apart, batch entries one after another.  lengths:
// [batch] when lengths_t is 0, else [batch][n_queries].  first_row: that of the masks' rows; position: `rows`
// times it come before, unless has_position is 0.
KERNEL void additive_attention_fwd(long row0, __global const float *restrict q, long q_start,
                                   long q_stride, __global const float *restrict k, long k_start,
                                   long k_stride, __global const float *restrict v, long v_start,
                                   long v_stride, __global const float *restrict w,
                                   __global const int *restrict lengths, int lengths_t,
                                   __global float *restrict y, __global float *restrict weights,
                                   int n_queries, int n_keys, int width, int value_width,
                                   __global const int *restrict position, int has_position,
                                   long rows, long first_row, DROPOUT_PARAMS, __local float *sums)
{
    SOFTMAX_LOCALS;
    const long row = row0 + get_group_id(0);
    const int b = (int)(row / n_queries);
    const int length = BY_LENGTHS ? clamp(lengths[lengths_t ? row : b], 0, n_keys) : n_keys;
    __global const float *query = q + q_start + row * q_stride;
    __global const float *keys = k + k_start + (long)b * n_keys * k_stride;
    __global const float *values = v + v_start + (long)b * n_keys * v_stride;
    struct online_softmax_state r = online_softmax_start(value_width, sums);
#if DROPOUT
    const struct dropout dropped = DROPOUT_OF;
    const long mask_row = (has_position ? position[0] * rows : 0) + first_row + row;
    const ulong mask_block = (ulong)(mask_row * ((n_keys + 3) / 4));
#endif

    for (int j0 = 0; j0 < n_keys; j0 += CHUNK) {
        const int n = min(CHUNK, n_keys - j0);
        if (j0 >= length && r.row_max >= MASKED_SCORE + COMPETING)
            break;
        for (int i = (int)get_local_id(0); i < CHUNK; i += LS) {
            const int j = j0 + i;
            scores[i] = j >= n_keys  ? -INFINITY
                        : j < length ? score(query, keys + j * k_stride, w, width)
                                     : MASKED_SCORE;
#if WEIGHTS
            if (j < n_keys)
                weights[row * n_keys + j] = scores[i];
#endif
        }
        float factor;
        r = online_softmax_exponentials(r, scores, tmp, &factor);
#if DROPOUT
        drop_scores(&dropped, mask_block + j0 / 4, scores, CHUNK);
        SOFTMAX_BARRIER();
#endif
        online_softmax_add(factor, scores, n, values + j0 * v_stride, STORED_FLOAT, v_stride,
                           value_width, sums);
    }
    online_softmax_store(r, sums, value_width, y + row * value_width);

#if WEIGHTS
    // Each work-item turns the scores that it stored itself; i + LS ... is the same set as above.
    for (int j0 = 0; j0 < n_keys; j0 += CHUNK)
        for (int j = j0 + (int)get_local_id(0); j < min(j0 + CHUNK, n_keys); j += LS) {
            const float s = j < length ? weights[row * n_keys + j] : MASKED_SCORE;
            weights[row * n_keys + j] =
                r.total == 0.0f ? 0.0f : exp_nonpos_f(s - r.row_max) / r.total;
        }
#endif
}
