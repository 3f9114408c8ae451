// SPDX-License-Identifier: MIT
// One backward step of recurrent units.  Host side: lib/op/recurrent/gru_bwd.c
//
//   forward   r, z = sigmoid(xi_r + hh_r), sigmoid(xi_z + hh_z)
//             n    = tanh(xi_n + r hh_n),   h' = (1 - z) n + z h
//   backward  g = dh',  dn = g (1 - z) (1 - n^2),  dz = g (h - n) z (1 - z),  dr = dn hh_n r (1 - r)
//             dxi = dr, dz, dn;  dhh = dr, dz, r dn;  carry = g z, the part of dh that skips W_hh
//             from an entry's length on, where h' = h and `masked` is 0:  dxi = dhh = 0,  carry = g
//   plain     h' = f(xi + hh);  dxi = dhh = g f', which follows from h'; no carry
//
//   Work      a work-group takes `per_group` channels of one batch entry, work-item i vectors i, i + LS
//             ... of them; 1-D grid: `n_chunks` work-groups to an entry
//   Memory    reads the gates, h and the gradients of h' once, writes dxi, dhh, h and carry once
//   Numerics  float
//
//   Macro  Meaning                                              Values
//   KIND   attncl_activation: f of plain units; identity: gated  0, 2, 4

#include "common/kinds.clh"
#include "common/vector.clh"

#ifndef KIND
#error "KIND: activation"
#endif

// Entry b of a step is row first_row + b * row_step of gates: 4 width, r, z, hh_n, n; dxi, dhh: 3 width, in the
// order r, z, n; dy, before: width.  Plain units: gates is h', and all rows have width.  h: the step's initial
// state, row b at h_start + b * h_stride, copied to before; has_h 0: zero and not read.  states: carry
// [entries][width], written, and from dh_at on the next step's gradient dh [entries][width], read if has_dh.  dmasked:
// the gradient of `masked`; it and dy are read only if has_dmasked and has_dy say so.  lens, if has_lens: [entries], the
// number of steps of each entry; t: this step.
KERNEL void gru_bwd_gates(__global const float *restrict gates, __global const float *restrict h,
                          long h_start, long h_stride, int has_h, __global const float *restrict dy,
                          __global float *restrict dxi, __global float *restrict dhh,
                          __global float *restrict before, __global float *states, long dh_at,
                          int has_dh, long first_row, long row_step, int width, int n_chunks,
                          int per_group, int has_dy, __global const float *restrict dmasked,
                          int has_dmasked, __global const int *restrict lens, int has_lens, int t)
{
    const int b = (int)get_group_id(0) / n_chunks;
    const int first = ((int)get_group_id(0) - b * n_chunks) * per_group;
    const int end = min(first + per_group, width);
    const long row = first_row + b * row_step, one = row * width;
    const bool ended = has_lens && t >= lens[b];

    for (int c = first + VW * (int)get_local_id(0); c < end; c += VW * LS) {
        const int count = end - c;
        const FV old = has_h ? load_some(h + h_start + b * h_stride + c, count, 0.0f) : (FV)(0.0f);
        FV g = has_dy ? load_some(dy + one + c, count, 0.0f) : (FV)(0.0f);
        if (has_dmasked && !ended)
            g += load_some(dmasked + one + c, count, 0.0f);
        if (has_dh)
            g += load_some(states + dh_at + (long)b * width + c, count, 0.0f);
        store_some(old, before + one + c, count);
#if KIND != ACT_IDENTITY
        const FV after = load_some(gates + one + c, count, 0.0f);
#if KIND == ACT_TANH
        const FV d = g * (1.0f - after * after);
#else
        const FV d = after <= 0.0f ? (FV)(0.0f) : g;
#endif
        store_some(d, dxi + one + c, count);
        store_some(d, dhh + one + c, count);
#else
        __global const float *s = gates + 4 * one + c;
        __global float *d = dxi + 3 * one + c, *e = dhh + 3 * one + c;
        if (ended) {
            for (int i = 0; i < 3; ++i) {
                store_some((FV)(0.0f), d + i * width, count);
                store_some((FV)(0.0f), e + i * width, count);
            }
            store_some(g, states + (long)b * width + c, count);
            continue;
        }
        const FV r = load_some(s, count, 0.0f), z = load_some(s + width, count, 0.0f);
        const FV hh_n = load_some(s + 2 * width, count, 0.0f);
        const FV n = load_some(s + 3 * width, count, 0.0f);
        const FV dn = g * (1.0f - z) * (1.0f - n * n);
        const FV dz = g * (old - n) * z * (1.0f - z);
        const FV dr = dn * hh_n * r * (1.0f - r);
        store_some(dr, d, count);
        store_some(dz, d + width, count);
        store_some(dn, d + 2 * width, count);
        store_some(dr, e, count);
        store_some(dz, e + width, count);
        store_some(dn * r, e + 2 * width, count);
        store_some(g * z, states + (long)b * width + c, count);
#endif
    }
}
