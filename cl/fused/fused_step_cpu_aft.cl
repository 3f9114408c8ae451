// SPDX-License-Identifier: MIT
// One position of an AFT layer without heads, from the layer norm to the output projection, CPU variant.  The
// result is split-K partial sums.  Host side: lib/op/fused/fused_step.c
//
//   x' = x + (partials_bias + sum_s partials_in[s]),  z = LN(x')             channel_block.clh
//   q, k, v = z Wq_g^T + bq_g, z Wk_g^T + bk_g, z Wv_g^T + bv_g       a block of channels
//   partials[g] = AFT(q, k, v) Wo_g^T                                    aft_step.clh
//
//   Work      one work-group = one block of `block_width` channels, for all rows; channels do not mix before
//             the output projection, so one launch does all.  Every work-group reduces and normalises all
//             rows, which is cheaper than another launch
//   Memory    reads each weight once; rows and a block's q, k and v in local memory; state as in
//             aft_step.clh
//   Numerics  float; each product is VW chains of FMAs, summed by a tree
//
//   Macro  Meaning                                Values
//   VW     vector width, a divisor of all widths  4 | 8 | 16

#define PER_HEAD 0
#include "common/aft_step.clh"
#include "fused/channel_block.clh"

// pos_bias: [n, n], not read when window is 0; position: [1]; sums, keys, values: as in
// aft_step.cl, all = m * channels
// A position outside 0 .. n - 1 gives NaN and leaves the state alone.
KERNEL void fused_step_cpu_aft(QKV_PARAMS, __global const float *restrict pos_bias, int n,
                               int window, __global const int *restrict position,
                               __global float *restrict sums, __global void *restrict keys,
                               __global void *restrict values)
{
    m = ROW_COUNT(m);
    const int t = *position;
    const long all = (long)m * channels;

    PROJECT_QKV(1);
    for (int i = 0; i < m; ++i)
        for (int c = 0; c < width; c += VW) {
            const long at = (long)i * channels + first + c;
            __local float *y = q + i * block_width + c;
            FV mixed = (FV)(NAN);
            if (t >= 0 && t < n)
                mixed = aft_step_lane(VLOAD(y), VLOAD(k + i * block_width + c),
                                      VLOAD(v + i * block_width + c), sums + at, keys, values, at,
                                      all, window, t, pos_bias + (long)t * n, VW);
            VSTORE(mixed, y);
        }

    store_partial(q, m, block_width, width, wo + first, channels, d_out, prefetch_rows_2, group,
                  out);
}
