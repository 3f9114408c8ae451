// SPDX-License-Identifier: MIT
// Gradients of fused attention, GPU variant, first pass.  Host side: lib/op/attention/attention_bwd.c
//
//   delta_i = g_i . y_i + sum_j p_ij c_ij
//
//   Work      LANES_PER_ROW work-items share a query of one head; a work-group has LS / LANES_PER_ROW queries
//   Memory    reads g and y once, p and c once if has_c; writes one float per row
//   Numerics  float; a row that sees no key has p and y 0, and gives 0
//
//   Macro          Meaning                                      Values
//   VW             floats in a vector                           1
//   LS             work-group size                              4 .. 256
//   LANES_PER_ROW  work-items that share a row, a power of two  4 .. LS

#include "common/row_tiling.clh"

// y, g: element (b, t, h, e) at b * y_b + t * y_t + h * value_width + e.  p, c: [B, H, T, S].  delta:
// [B, H, T], `rows` in all.
KERNEL void attention_bwd_gpu_delta(__global const float *restrict y, long y_b, long y_t,
                                    __global const float *restrict g,
                                    __global const float *restrict p,
                                    __global const float *restrict c, int has_c,
                                    __global float *restrict delta, long rows, int n_heads,
                                    int n_queries, int n_keys, int value_width)
{
    ROW_REDUCE_LOCALS(tmp, 1);

    FOR_ROWS (row, rows, 1) {
        const long head = row / n_queries, i = row - head * n_queries, b = head / n_heads;
        const long at = b * y_b + i * y_t + (head - b * n_heads) * value_width;
        const int width = row < rows ? value_width : 0, keys = row < rows && has_c ? n_keys : 0;
        float part = 0.0f;

        FOR_ROW_VECS (k, e, width)
            part += g[at + e] * y[at + e];
        FOR_ROW_VECS (k, j, keys) {
            const float weight = p[row * n_keys + j];
            if (weight > 0.0f)
                part += weight * c[row * n_keys + j];
        }
        const float sum = row_reduce_sum(part, ROW_REDUCE_SLOT(tmp, 0));
        if (row < rows && LANE_START == 0)
            delta[row] = sum;
    }
}
