// SPDX-License-Identifier: MIT
// Split-K reduction: the sum of partial results.  Host side: lib/op/fused/split_k_reduce.c
//
//   y = residual + (bias + sum_s partials[s])        partials [n_partials, m, d], bias [d]
//
//   Work      one work-group = one row of y, its work-items share the columns
//   Memory    reads everything once
//   Numerics  float; partials are added in order

#include "common/vector.clh"

KERNEL void split_k_reduce_fwd(int d, int n_partials, int has_bias, long count,
                               __global const float *restrict partials,
                               __global const float *restrict bias,
                               __global const float *restrict residual, __global float *restrict y)
{
    const long row = (long)get_group_id(0) * d;

    for (int c = VW * (int)get_local_id(0); c < d; c += VW * LS) {
        const int left = d - c;
        FV sum = has_bias ? load_some(bias + c, left, 0.0f) : (FV)(0.0f);
        for (int s = 0; s < n_partials; ++s)
            sum += load_some(partials + s * count + row + c, left, 0.0f);
        store_some(load_some(residual + row + c, left, 0.0f) + sum, y + row + c, left);
    }
}
