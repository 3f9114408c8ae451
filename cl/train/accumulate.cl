// SPDX-License-Identifier: MIT
// Sums and averages in place.  Host side: lib/op/train/accumulate.c
//
//   Work      a work-group takes `per_group` consecutive elements, work-item i vectors i, i + LS ...
//   Memory    reads each array once, writes one
//   Numerics  two roundings; a sum (keep and gain are 1) has one

#define ALIGNED_VECTORS
#include "common/vector.clh"

// keep 0: what `into` held is not read; guard: [1], not a number: `into` stays as it is
KERNEL void accumulate_fwd(__global float *restrict into, __global const float *restrict x,
                           __global const float *restrict guard, int has_x, int has_guard,
                           float keep, float gain, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);

    if (has_guard && isnan(*guard))
        return;

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const long at = first + c;
        const int some = n - c;
        FV y = (FV)(0.0f);
        if (has_x)
            y = load_some(x + at, some, 0.0f) * gain;
        if (keep != 0.0f)
            y += load_some(into + at, some, 0.0f) * keep;
        store_some(y, into + at, some);
    }
}
