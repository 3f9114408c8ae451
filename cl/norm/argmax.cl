// SPDX-License-Identifier: MIT
// The index of a row's largest element, the first among equals.  Host side: lib/op/norm/argmax.c
//
//   Work      a work-group takes `per_group` rows, work-item i vectors i, i + LS ... of each
//   Memory    reads x once; with LS = 1 up to twice, the second time from cache
//   Numerics  exact; NaN is never the largest; a row of only NaN gives 0

#include "common/rows.clh"

#if LS == 1

static inline int find_first_largest(__global const float *xr, int width)
{
    const float largest = item_max(xr, width);
    int place = 0;

    while (place < width && xr[place] != largest)
        ++place;
    return place;
}

#define ARGMAX_SPACE
#define ARGMAX(xr, width) find_first_largest(xr, width)

#else

// Each work-item finds the first of its largest elements; a tree over indices and values reduces them.
LOCAL_INLINE int find_first_largest(__global const float *xr, int width, __local float *values,
                                    __local int *places)
{
    const int lid = (int)get_local_id(0);
    float best = -INFINITY;
    int place = width;

    for (int c = lid; c < width; c += LS) {
        const float e = xr[c];
        const int better = e > best || (e == best && place == width);
        best = better ? e : best;
        place = better ? c : place;
    }
    values[lid] = best;
    places[lid] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_width = LS / 2; half_width > 0; half_width >>= 1) {
        if (lid < half_width) {
            const float v = values[lid + half_width];
            const int p = places[lid + half_width];
            if (v > values[lid] || (v == values[lid] && p < places[lid])) {
                values[lid] = v;
                places[lid] = p;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int found = places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return found;
}

#define ARGMAX_SPACE                                                                               \
    __local float values[LS];                                                                      \
    __local int places[LS];
#define ARGMAX(xr, width) find_first_largest(xr, width, values, places)

#endif

// x: rows of `width`, `stride` apart; y: [rows]
KERNEL void argmax_rows_fwd(__global const float *restrict x, __global int *restrict y, long start,
                            long stride, int width, long rows, int per_group)
{
    ARGMAX_SPACE
    const long begin = (long)get_group_id(0) * per_group;
    const long end = min(begin + per_group, rows);

    for (long row = begin; row < end; ++row) {
        const int place = ARGMAX(x + start + row * stride, width);
        if (get_local_id(0) == 0)
            y[row] = place < width ? place : 0;
    }
}
