// SPDX-License-Identifier: MIT
// Fills y with zeros, to which copy.cl adds the rows of a view.  Host side: lib/op/view/view_scatter_add.c
//
//   Work      a work-group writes `per_group` consecutive elements
//   Memory    writes y once
//   Numerics  exact

#include "common/vector.clh"

KERNEL void view_scatter_add_fill(__global float *restrict y, long start, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);
    int c = VW * (int)get_local_id(0);

    y += start + first;
    for (; c + VW <= n; c += VW * LS)
        VSTORE((FV)(0.0f), y + c);
    if (c < n)
        store_part((FV)(0.0f), y + c, n - c);
}
