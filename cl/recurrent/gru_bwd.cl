// SPDX-License-Identifier: MIT
// One backward step of gated recurrent units.  Host side: lib/op/recurrent/gru_bwd.c
//
//   forward   r, z = sigmoid(xi_r + hh_r), sigmoid(xi_z + hh_z)
//             n    = tanh(xi_n + r hh_n),   h' = (1 - z) n + z h
//   backward  g = dh',  dn = g (1 - z) (1 - n^2),  dz = g (h - n) z (1 - z),  dr = dn hh_n r (1 - r)
//             dxi = dr, dz, dn;  dhh = dr, dz, r dn;  carry = g z, the part of dh that skips W_hh
//
//   Work      a work-group takes `per_group` channels of one batch entry, work-item i vectors i, i + LS
//             ... of them; 1-D grid: `n_chunks` work-groups to an entry.  gru_bwd_before: a work-group takes
//             `rows_per_group` rows
//   Memory    reads xi, hh, h and the gradients of h' once; dhh replaces hh where it lies
//   Numerics  float; the gates are computed again, as the forward kernel does
//
//   Macro     Meaning                                  Values
//   VW        floats in a vector                       1 | 4 | 8 | 16
//   LS        work-group size, a power of two          1 .. 256

#include "common/math.clh"
#include "common/rows.clh"

// before: [rows][width], what each row's step started from: the step's former row of y, at the
// first step h0 or zero.  Rows are [step][entry] when time_first, else [entry][step]; n_inner: the
// extent of the second of the two.
KERNEL void gru_bwd_before(__global const float *restrict y, __global const float *restrict h0,
                           long h0_start, long h0_stride, int has_h0,
                           __global float *restrict before, int width, long n_rows,
                           int rows_per_group, long n_inner, int time_first)
{
    const long begin = (long)get_group_id(0) * rows_per_group;
    const long end = min(begin + rows_per_group, n_rows);

    for (long row = begin; row < end; ++row) {
        const long outer = row / n_inner, inner = row - outer * n_inner;
        const long step = time_first ? outer : inner, entry = time_first ? inner : outer;
        const int at_start = step == 0;
        __global const float *from = at_start ? h0 + h0_start + entry * h0_stride
                                              : y + (row - (time_first ? n_inner : 1)) * width;
        for (int c = VW * (int)get_local_id(0); c < width; c += VW * LS)
            store_some(at_start && !has_h0 ? (FV)(0.0f) : load_some(from + c, width - c, 0.0f),
                       before + row * width + c, width - c);
    }
}

// Rows of xi, hh, dxi: 3 width, gates in the order r, z, n; of h, dy: width.  Entry b of a step is
// row first_row + b * row_step of all of them.  states: carry [entries][width], written, and from
// dh_at on dh [entries][width], the gradient that comes from the next step; has_dh 0: none does.
KERNEL void gru_bwd_gates(__global const float *restrict xi, __global float *restrict hh,
                          __global const float *restrict h, __global const float *restrict dy,
                          __global float *restrict dxi, __global float *states, long dh_at,
                          int has_dh, long first_row, long row_step, int width, int n_chunks,
                          int per_group)
{
    const int b = (int)get_group_id(0) / n_chunks;
    const int first = ((int)get_group_id(0) - b * n_chunks) * per_group;
    const int end = min(first + per_group, width);
    const long row = first_row + b * row_step, one = row * width, three = 3 * one;

    for (int c = first + VW * (int)get_local_id(0); c < end; c += VW * LS) {
        const int count = end - c;
        __global const float *x = xi + three + c;
        __global float *s = hh + three + c, *d = dxi + three + c;
        const FV s_n = load_some(s + 2 * width, count, 0.0f);
        const FV r = sigmoid_v(load_some(x, count, 0.0f) + load_some(s, count, 0.0f));
        const FV z =
            sigmoid_v(load_some(x + width, count, 0.0f) + load_some(s + width, count, 0.0f));
        const FV n = tanh_v(load_some(x + 2 * width, count, 0.0f) + r * s_n);
        FV g = load_some(dy + one + c, count, 0.0f);
        if (has_dh)
            g += load_some(states + dh_at + (long)b * width + c, count, 0.0f);
        const FV dn = g * (1.0f - z) * (1.0f - n * n);
        const FV dz = g * (load_some(h + one + c, count, 0.0f) - n) * z * (1.0f - z);
        const FV dr = dn * s_n * r * (1.0f - r);
        store_some(dr, d, count);
        store_some(dz, d + width, count);
        store_some(dn, d + 2 * width, count);
        store_some(dr, s, count);
        store_some(dz, s + width, count);
        store_some(dn * r, s + 2 * width, count);
        store_some(g * z, states + (long)b * width + c, count);
    }
}
