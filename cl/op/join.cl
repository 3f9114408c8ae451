// SPDX-License-Identifier: MIT
// A sum that waits in parts.  Host side: lib/op/join.c
//
//   y = residual + (bias + sum_s parts[s])        parts [n_parts, m, d], bias [d]
//
//   Work      one group = one row of y, its work-items share the columns
//   Memory    reads everything once
//   Numerics  float; parts in their order
//
//   Macro     Meaning                          Values
//   VW        vector width                     1 (GPU) | 4 | 8 | 16
//   LS        work-items in a group            1 (CPU) .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

KERNEL void join_fwd(int d, int n_parts, int has_bias, long count,
                     __global const float *restrict parts, __global const float *restrict bias,
                     __global const float *restrict residual, __global float *restrict y)
{
    const long row = (long)get_group_id(0) * d;

    for (int c = VW * (int)get_local_id(0); c < d; c += VW * LS) {
        const int left = d - c;
        FV sum = has_bias ? load_some(bias + c, left, 0.0f) : (FV)(0.0f);
        for (int s = 0; s < n_parts; ++s)
            sum += load_some(parts + s * count + row + c, left, 0.0f);
        store_some(load_some(residual + row + c, left, 0.0f) + sum, y + row + c, left);
    }
}
