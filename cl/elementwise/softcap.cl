// SPDX-License-Identifier: MIT
// y = cap tanh(x / cap), and dx = (1 - (y / cap)^2) dy.  Host side: lib/op/elementwise/softcap.c
//
//   Work      a work-group takes `per_group` consecutive elements, work-item i vectors i, i + LS ...
//   Memory    reads and writes each element once
//   Numerics  cl/common/softcap.clh

#define ALIGNED_VECTORS
#define SOFTCAP 1
#include "common/softcap.clh"

KERNEL void softcap_flat_fwd(__global const float *restrict x, __global const float *restrict none,
                             __global float *restrict y, float cap, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS)
        store_some(CAP_SCORE(v, load_some(x + first + c, n - c, 0.0f), cap), y + first + c, n - c);
}

KERNEL void softcap_flat_bwd(__global const float *restrict y, __global const float *restrict dy,
                             __global float *restrict dx, float cap, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const FV capped = load_some(y + first + c, n - c, 0.0f);
        store_some(load_some(dy + first + c, n - c, 0.0f) * CAP_SLOPE(capped, cap), dx + first + c,
                   n - c);
    }
}
