// SPDX-License-Identifier: MIT
// The gates of one step of recurrent units.  Host side: lib/op/recurrent/gru.c
//
//   gated  r, z = sigmoid(xi_r + hh_r), sigmoid(xi_z + hh_z)
//          n    = tanh(xi_n + r * hh_n),   h' = (1 - z) n + z h
//          from an entry's length on  h' = h
//   plain  h'   = f(xi + hh)
//
//   Work      a work-group takes `per_group` channels of one batch entry, work-item i vectors i, i + LS
//             ... of them; 1-D grid: `n_chunks` work-groups to an entry
//   Memory    reads xi, hh and h once, writes h' once and, if `keep`, r, z and n; h and h' are rows of the
//             same sequence
//   Numerics  float; gates saturate to 0, 1 and -1, 1
//
//   Macro  Meaning                                              Values
//   KIND   attncl_activation: f of plain units; identity: gated  0, 2, 4

#include "common/activation.clh"

// xi, hh: rows of 3 width, gates in the order r, z, n; plain units: of width.  h, y: rows of width.
// has_h 0: h is zero and not read.  keep: rows of hh have 4 width and become r, z, hh_n, n.
// Gated units may have lens, [entries], the number of steps of each entry: has_lens.  Then masked is y with zeros
// from each entry's length on.  t: this step.
KERNEL void gru_gates_fwd(__global const float *restrict xi, long xi_start, long xi_stride,
                          __global float *restrict hh, long hh_start, long hh_stride,
                          __global const float *h, long h_start, long h_stride, int has_h,
                          __global float *y, long y_start, long y_stride, int keep, int width,
                          int n_chunks, int per_group, __global const int *restrict lens,
                          int has_lens, int t, __global float *restrict masked)
{
    const int b = (int)get_group_id(0) / n_chunks;
    const int first = ((int)get_group_id(0) - b * n_chunks) * per_group;
    const int end = min(first + per_group, width);
    __global const float *x = xi + xi_start + b * xi_stride;
    __global float *s = hh + hh_start + b * hh_stride;
    __global float *after = y + y_start + b * y_stride;

    for (int c = first + VW * (int)get_local_id(0); c < end; c += VW * LS) {
        const int count = end - c;
#if KIND != ACT_IDENTITY
        const FV sum = load_some(x + c, count, 0.0f) + load_some(s + c, count, 0.0f);
        store_some(ACTIVATE(sum), after + c, count);
#else
        const FV old = has_h ? load_some(h + h_start + b * h_stride + c, count, 0.0f) : (FV)(0.0f);
        FV next = old;
        if (!has_lens || t < lens[b]) {
            const FV r = sigmoid_v(load_some(x + c, count, 0.0f) + load_some(s + c, count, 0.0f));
            const FV z = sigmoid_v(load_some(x + width + c, count, 0.0f) +
                                   load_some(s + width + c, count, 0.0f));
            const FV n = tanh_v(load_some(x + 2 * width + c, count, 0.0f) +
                                r * load_some(s + 2 * width + c, count, 0.0f));
            next = (1.0f - z) * n + z * old;
            if (keep) {
                store_some(r, s + c, count);
                store_some(z, s + width + c, count);
                store_some(n, s + 3 * width + c, count);
            }
        }
        store_some(next, after + c, count);
        if (has_lens)
            store_some(t < lens[b] ? next : (FV)(0.0f), masked + (after - y) + c, count);
#endif
    }
}
