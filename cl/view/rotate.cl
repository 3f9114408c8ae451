// SPDX-License-Identifier: MIT
// Rotation of pairs of neighbouring channels.  Host side: lib/op/view/rotate.c
//
//   y_c  = table[0][c] x_c  + table[1][c] x_(c ^ 1)
//   dx_c = table[0][c] dy_c + table[1][c ^ 1] dy_(c ^ 1)
//
//   Work      a work-group takes `rows_per_group` consecutive rows, work-item i vectors i, i + LS ... of
//             each
//   Memory    reads x once, writes y once; the table stays in cache
//   Numerics  two products and their sum

#include "common/vector.clh"

// The other channel of each pair.
static inline FV swap_pairs(FV v, __global const float *x, int c)
{
#if VW == 1
    return x[c ^ 1];
#else
    FV other;
    other.even = v.odd;
    other.odd = v.even;
    return other;
#endif
}

// x: `rows` rows of `width`, even, from `start`, `stride` apart; y: contiguous; table: [2, width]; back: x is dy, y is dx
KERNEL void rotate_rows(__global const float *restrict x, __global const float *restrict table,
                        __global float *restrict y, long start, long stride, int width, long rows,
                        int rows_per_group, int back)
{
    const long first = (long)get_group_id(0) * rows_per_group;
    const long end = min(first + rows_per_group, rows);
    __global const float *cross = table + width;

    for (long row = first; row < end; ++row) {
        __global const float *xr = x + start + row * stride;
        __global float *yr = y + row * width;
        int c = VW * (int)get_local_id(0);
        for (; c + VW <= width; c += VW * LS) {
            const FV v = VLOAD(xr + c);
            FV other = VLOAD(cross + c);
            other = back ? swap_pairs(other, cross, c) : other;
            VSTORE(VLOAD(table + c) * v + other * swap_pairs(v, xr, c), yr + c);
        }
        if (c < width) {
            const int n = width - c;
            const FV v = load_part(xr + c, n, 0.0f), own = load_part(table + c, n, 0.0f);
            FV other = load_part(cross + c, n, 0.0f);
            other = back ? swap_pairs(other, cross, c) : other;
            store_part(own * v + other * swap_pairs(v, xr, c), yr + c, n);
        }
    }
}
