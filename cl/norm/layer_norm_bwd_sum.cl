// SPDX-License-Identifier: MIT
// The gradients of a layer norm's weight and bias from their parts.  Host side:
// lib/op/norm/layer_norm_bwd.c
//
//   Work      a work-group takes `per_group` columns, work-item i vectors i, i + LS ... of them
//   Memory    reads parts once
//   Numerics  parts are added in their order
//
//   Macro          Meaning                                  Values
//   VW             floats in a vector                       1 | 4 | 8 | 16
//   LS             work-group size, a power of two          1 .. 256

#include "common/vector.clh"

#ifndef LS
#error "LS: work-group size"
#endif

enum { STEP = VW * LS };

// parts: [blocks, 2, width], of dw and of db
KERNEL void layer_norm_bwd_sum(__global const float *restrict parts, __global float *restrict dw,
                               __global float *restrict db, int width, long blocks, int per_group)
{
    const int first = (int)get_group_id(0) * per_group;
    const int end = min(first + per_group, width);

    for (int c = first + VW * (int)get_local_id(0); c < end; c += STEP) {
        FV w = (FV)(0.0f), b = w;
        for (long k = 0; k < blocks; ++k) {
            __global const float *part = parts + 2 * k * width + c;
            w += load_some(part, end - c, 0.0f);
            b += load_some(part + width, end - c, 0.0f);
        }
        store_some(w, dw + c, end - c);
        store_some(b, db + c, end - c);
    }
}
