// SPDX-License-Identifier: MIT
// Fused attention, GPU form, keys shared out among groups: their parts become rows.  Host side:
// lib/op/attention_groups.c
//
//   y_i = sum_s e^(top_s - top) sums_s / sum_s e^(top_s - top) total_s,   top = max_s top_s
//
//   Work      one group = one query of one head; grid (heads of all batch entries, queries)
//   Memory    reads the parts' sums once, their maxima and totals once per work-item; writes y
//   Numerics  float; parts are added in their order; a row that sees no key gives 0
//
//   Macro     Meaning                  Values
//   LS        work-items in a group    1 .. 64
//   VW        floats in a vector       1

#ifndef LS
#error "LS: work-items in a group"
#endif

#include "common/math.clh"

// scratch: [B, H, T] maxima and totals of whole rows when keep_rows; from parts_at on those of
// n_splits parts, [n_splits, B, H, T], then their sums [n_splits, B, H, T, value_width].
// y: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.
KERNEL void attention_merge_fwd(__global float *restrict y, long y_b, long y_t,
                                __global float *restrict scratch, int keep_rows, long parts_at,
                                int n_splits, int n_heads, int value_width)
{
    const int head = get_group_id(0), b = head / n_heads, h = head - b * n_heads;
    const int n_queries = get_num_groups(1), i = get_group_id(1);
    const long n_rows = (long)get_num_groups(0) * n_queries, row = (long)head * n_queries + i;
    __global const float *pairs = scratch + parts_at + 2 * row;
    __global const float *sums = scratch + parts_at + 2 * n_splits * n_rows + row * value_width;
    __global float *to = y + b * y_b + i * y_t + (long)h * value_width;
    float top = -INFINITY, total = 0.0f;

    for (int s = 0; s < n_splits; s++)
        top = fmax(top, pairs[2 * s * n_rows]);
    const float shift = top == -INFINITY ? 0.0f : top;
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
        scratch[2 * row] = top;
        scratch[2 * row + 1] = total;
    }
}
