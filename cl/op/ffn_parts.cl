// SPDX-License-Identifier: MIT
// A feed-forward network of few rows with the layer norm in front of it, its result in parts, CPU
// form.  Host side: lib/op/ffn_parts.c
//
//   x' = x + (before_bias + sum_s before[s])              joined_rows.clh
//   parts[g] = act(LN(x') W1_g^T + b1_g) W2_g^T           W1_g, b1_g, W2_g: a slice of the hidden
//   units
//
//   Work      one group = one slice of `slice` hidden units, for all rows: it needs nothing of the
//             others, so that both products are one launch.  Each group joins and normalises all
//             rows for itself: less than a launch takes
//   Memory    reads each weight once; rows and a slice's hidden units in local memory
//   Numerics  float; VW chains of multiply-adds for each product, summed by a tree
//
//   Macro      Meaning                                              Values
//   LS         work-items in a group                                1
//   VW         vector width, a divisor of all widths                4 | 8 | 16
//   OUT MOST_ROWS TAIL AHEAD   as in few_rows.clh, TAIL = 0
//   ACT        the activation                                       0 .. 5

#include "common/epilogue.clh"

#include "common/slices.clh"

// w1: [f, d]; b1: [f]; w2: [d_out, f]; out: [groups, m, d_out]; x_whole: [m, d]
// ahead_1, ahead_2: rows of w1 and w2 that are asked for early
// rows: [m, d]; hidden: [m, slice]
KERNEL void ffn_parts_fwd(JOINED_PARAMS, __global float *restrict x_whole, int f, int slice,
                          int d_out, int ahead_1, int ahead_2, __global const float *restrict w1,
                          int has_b1, __global const float *restrict b1,
                          __global const float *restrict w2, __global float *restrict out,
                          __local float *restrict rows, __local float *restrict hidden)
{
    const int group = (int)get_group_id(0), first = group * slice, width = min(slice, f - first);

    joined_rows(m, d, n_parts, has_parts_bias, x, parts, parts_bias, norm_weight, norm_bias, eps,
                x_whole, rows);
    map_slice(rows, m, d, w1, b1, has_b1, ahead_1, first, width, slice, hidden);
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < width; j += VW) {
            __local float *h = hidden + i * slice + j;
            VSTORE(ACTIVATE(v, FV, VLOAD(h)), h);
        }
    addend_of_slice(hidden, m, slice, width, w2 + first, f, d_out, ahead_2, group, out);
}
