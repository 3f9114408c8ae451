// SPDX-License-Identifier: MIT
// The place of a row's largest element, the first among equals.  Host side: lib/op/argmax.c
//
//   Work      a group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x up to twice, a row at a time: the second comes from cache
//   Numerics  exact; NaN is never the largest; a row of NaN only gives 0
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two    1 .. 256

#include "common/rows.clh"

// x: rows of `width` <= 2^24, `stride` apart; y: [rows]
KERNEL void argmax_rows_fwd(__global const float *restrict x, __global int *restrict y, long start,
                            long stride, int width, long rows, int per_group)
{
    GROUP_SPACE(tmp);
    const long begin = (long)get_group_id(0) * per_group;
    const long end = min(begin + per_group, rows);

    for (long row = begin; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        const float largest = ROW_MAX(xr, width, tmp);

        // Elements from each work-item's first place to the end; the most of them, a float exactly.
        int place = (int)get_local_id(0);
        while (place < width && xr[place] != largest)
            place += LS;
        const int most = (int)GROUP_MAX((float)max(width - place, 0), tmp);
        if (get_local_id(0) == 0)
            y[row] = most > 0 ? width - most : 0;
    }
}
