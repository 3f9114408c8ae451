// SPDX-License-Identifier: MIT
// Zeros, and rows scattered (or added) to the positions of a view.  Host side:
// lib/op/view/view_scatter_add.c
//
//   Work      zeros: a work-group writes `per_group` consecutive elements; rows: one scatters
//             `per_group` rows, work-item i vectors i, i + LS ...; the outer index of the first row
//             is found by division, the next ones by counting up
//   Memory    reads x once, writes its elements of y once, having read them when it adds
//   Numerics  one rounding when it adds, else bits are copied.  No element is written twice: a
//             view has each of its elements once
//
//   Macro     Meaning                                  Values
//   ADD       add to y, or overwrite it                0 | 1
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-group size, a power of two          1 .. 256

#include "common/vector.clh"

#ifndef ADD
#error "ADD: add to y, or overwrite it"
#endif
#ifndef LS
#error "LS: work-group size"
#endif

enum { N_OUTER = 7 };

KERNEL void view_scatter_add_fill(__global float *restrict y, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);
    int c = VW * (int)get_local_id(0);

    y += first;
    for (; c + VW <= n; c += VW * LS)
        VSTORE((FV)(0.0f), y + c);
    if (c < n)
        store_part((FV)(0.0f), y + c, n - c);
}

#if ADD
#define PUT_V(v, to) VSTORE(VLOAD(to) + (v), to)
#define PUT(v, to)   (*(to) += (v))
#else
#define PUT_V(v, to) VSTORE(v, to)
#define PUT(v, to)   (*(to) = (v))
#endif

// The last row may be cut short: x has `count` elements in all.
KERNEL void view_scatter_add_rows_fwd(__global const float *restrict x, __global float *restrict y,
                                      long start, int width, long step, long rows, long count,
                                      int per_group, long d0, long s0, long d1, long s1, long d2,
                                      long s2, long d3, long s3, long d4, long s4, long d5, long s5,
                                      long d6, long s6)
{
    const long dim[N_OUTER] = {d0, d1, d2, d3, d4, d5, d6};
    const long stride[N_OUTER] = {s0, s1, s2, s3, s4, s5, s6};
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);
    const int i = (int)get_local_id(0);
    long index[N_OUTER];

    long rest = first;
    for (int a = N_OUTER - 1; a >= 0; --a) {
        index[a] = dim[a] == 1 ? 0 : rest % dim[a];
        rest = dim[a] == 1 ? rest : rest / dim[a];
    }
    for (long row = first; row < end; ++row) {
        long at = start;
        for (int a = 0; a < N_OUTER; ++a)
            at += index[a] * stride[a];
        __global const float *from = x + row * width;
        __global float *to = y + at;
        const int here = (int)min((long)width, count - row * width);
        int c = VW * i;
        if (step == 1) {
            for (; c + VW <= here; c += VW * LS)
                PUT_V(VLOAD(from + c), to + c);
            for (int end_c = min(c + VW, here); c < end_c; ++c)
                PUT(from[c], to + c);
        } else {
            for (c = i; c < here; c += LS)
                PUT(from[c], to + c * step);
        }
        for (int a = N_OUTER - 1; a >= 0; --a) {
            if (++index[a] < dim[a])
                break;
            index[a] = 0;
        }
    }
}
