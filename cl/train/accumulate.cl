// SPDX-License-Identifier: MIT
// Sums and averages in place.  Host side: lib/op/train/accumulate.c
//
//   Work      a work-group takes `per_group` consecutive elements of a part, work-item i vectors i, i + LS ...
//   Memory    reads each array once, writes one
//   Numerics  two roundings; a sum (keep and gain are 1) has one

#define ALIGNED_VECTORS
#include "common/parts.clh"
#include "common/vector.clh"

#define UPDATE_PARAMS(i) , __global float *into_##i, __global const float *x_##i PART_PARAMS(i)
#define TAKE(i)          IF_IN_PART(i) into = into_##i, x = x_##i;

// keep 0: what `into` held is not read; guard: [1], not a number: `into` stays as it is
KERNEL void accumulate_fwd(__global const float *restrict guard, int has_x, int has_guard,
                           float keep, float gain PARTS(UPDATE_PARAMS))
{
    __global float *into;
    __global const float *x;
    struct part part;

    PARTS(TAKE)
    const long first = part_first(&part);
    const int n = part_count(&part);

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
