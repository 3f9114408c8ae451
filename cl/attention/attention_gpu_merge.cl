// SPDX-License-Identifier: MIT
// Fused attention, GPU variant: merges partial results of splits of the keys.  Host side:
// lib/op/attention/attention_gpu.c
//
//   y_i = sum_s e^(row_max_s - row_max) sums_s / sum_s e^(row_max_s - row_max) total_s,   row_max = max_s row_max_s
//
//   Work      one work-group = one query of one head; grid (heads of all batch entries, queries)
//   Memory    reads the splits' sums once, their maxima and totals once per work-item; writes y
//   Numerics  float; partial results are added in order; a row that sees no key gives 0
//
//   Macro  Meaning             Values
//   LS     work-group size     1 .. 64
//   VW     floats in a vector  1

#ifndef LS
#error "LS: work-group size"
#endif

#include "common/math.clh"

// rows, if keep_rows: [B, H, T], maxima and 1 / totals of whole rows.  scratch, from parts_at on: maxima and
// totals of the partial results, [n_splits, B, H, T], then their sums [n_splits, B, H, T, value_width].
// y: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.
KERNEL void attention_gpu_merge_fwd(__global float *restrict y, long y_b, long y_t,
                                    __global float *restrict rows, int keep_rows,
                                    __global const float *restrict scratch, long parts_at,
                                    int n_splits, int n_heads, int value_width)
{
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int n_queries = get_num_groups(1), i = get_group_id(1);
    const long n_rows = (long)get_num_groups(0) * n_queries, row = (long)head * n_queries + i;
    __global const float *pairs = scratch + parts_at + 2 * row;
    __global const float *sums = scratch + parts_at + 2 * n_splits * n_rows + row * value_width;
    __global float *to = y + b * y_b + i * y_t + (long)h * value_width;
    float row_max = -INFINITY, total = 0.0f;

    for (int s = 0; s < n_splits; s++)
        row_max = fmax(row_max, pairs[2 * s * n_rows]);
    const float shift = row_max == -INFINITY ? 0.0f : row_max;
    for (int s = 0; s < n_splits; s++)
        total += exp_nonpos_f(pairs[2 * s * n_rows] - shift) * pairs[2 * s * n_rows + 1];
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
    for (int e = get_local_id(0); e < value_width; e += LS) {
        float sum = 0.0f;
        for (int s = 0; s < n_splits; s++)
            sum += exp_nonpos_f(pairs[2 * s * n_rows] - shift) * sums[s * n_rows * value_width + e];
        to[e] = sum * factor;
    }
    if (keep_rows && get_local_id(0) == 0) {
        rows[2 * row] = shift;
        rows[2 * row + 1] = factor;
    }
}
