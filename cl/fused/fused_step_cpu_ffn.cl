// SPDX-License-Identifier: MIT
// A feed-forward network of few rows with the layer norm before it, CPU variant.  The result is split-K partial
// sums.  Host side: lib/op/fused/fused_step.c
//
//   x' = x + (partials_bias + sum_s partials_in[s])              channel_block.clh
//   partials[g] = act(LN(x') W1_g^T + b1_g) W2_g^T           W1_g, b1_g, W2_g: a block
//                                                            of hidden units
//
//   Work      one work-group = one block of `block_width` hidden units, for all rows; blocks are independent,
//             so one launch does both GEMMs.  Every work-group reduces and normalises all rows, which is
//             cheaper than another launch
//   Memory    reads each weight once; rows and a block's hidden units in local memory
//   Numerics  float; each product is VW chains of FMAs, summed by a tree
//
//   Macro  Meaning                                Values
//   VW     vector width, a divisor of all widths  4 | 8 | 16

#include "common/epilogue.clh"
#include "fused/channel_block.clh"

// w1: [f, d]; b1: [f]; w2: [d_out, f]; out: [blocks, m, d_out]; residual_out: [m, d]
// prefetch_rows_1, prefetch_rows_2: prefetch distance in rows of w1 and w2
// rows: [m, d]; hidden: [m, block_width]
KERNEL void fused_step_cpu_ffn(PRENORM_PARAMS, __global float *restrict residual_out, int f,
                               int block_width, int d_out, int prefetch_rows_1, int prefetch_rows_2,
                               int has_b1, __global const WEIGHT *restrict w1,
                               __global const float *restrict b1,
                               __global const WEIGHT *restrict w2, __global float *restrict out,
                               __local float *restrict rows, __local float *restrict hidden)
{
    m = ROW_COUNT(m);
    const int group = (int)get_group_id(0), first = group * block_width,
              width = min(block_width, f - first);

    prenorm_rows(m, d, n_partials, has_partials_bias, x, partials, partials_bias, norm_weight,
                 norm_bias, eps, residual_out, rows);
    project_block(rows, m, d, w1, b1, has_b1, prefetch_rows_1, first, width, block_width, hidden);
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < width; j += VW) {
            __local float *h = hidden + i * block_width + j;
            VSTORE(ACTIVATE(v, FV, VLOAD(h)), h);
        }
    store_partial(hidden, m, block_width, width, w2 + first, f, d_out, prefetch_rows_2, group, out);
}
