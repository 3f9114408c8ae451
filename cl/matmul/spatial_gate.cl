// SPDX-License-Identifier: MIT
// The masked weight of a spatial gate.  Host side: lib/op/matmul/spatial_gate.c
//
//   Work      a work-group takes `per_group` rows, work-item i columns i, i + LS ...
//   Memory    reads the used part of weight and mask, writes as much
//   Numerics  a masked entry is 0, whatever the weight is

#include "common/types.clh"

// weight: rows of n; mask: [length or 1, length], `mask_stride` 0 for one row; masked: [length,
// length]
KERNEL void spatial_gate_mask_fwd(__global const float *restrict weight,
                                  __global const uchar *restrict mask,
                                  __global float *restrict masked, long n, int length,
                                  long mask_stride, int per_group)
{
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, length);

    for (int i = first; i < end; ++i)
        for (int j = (int)get_local_id(0); j < length; j += LS)
            masked[(long)i * length + j] = mask[i * mask_stride + j] ? weight[i * n + j] : 0.0f;
}
