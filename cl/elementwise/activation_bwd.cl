// SPDX-License-Identifier: MIT
// The gradients of activations, with a gate or without.  Host side:
// lib/op/elementwise/activation_bwd.c
//
//   Work      a work-group takes `per_group` consecutive elements, work-item i vectors i, i + LS ... of
//             them
//   Memory    reads each input once, writes each output once
//   Numerics  cl/common/activation.clh
//
//   Macro  Meaning                       Values
//   GATE   y = f(x) gate, else y = f(x)  0 | 1

#define ALIGNED_VECTORS
#include "common/activation.clh"

#ifndef GATE
#error "GATE: whether there is a gate"
#endif
// All arrays: [count].  gate and dgate are used with GATE only.
KERNEL void activation_bwd_flat(__global const float *restrict x, __global const float *restrict dy,
                                __global const float *restrict gate, __global float *restrict dx,
                                __global float *restrict dgate, long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);

    x += first;
    dy += first;
    dx += first;
    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const FV v = load_some(x + c, n - c, 0.0f), d = load_some(dy + c, n - c, 0.0f);
#if GATE
        const FV open = load_some(gate + first + c, n - c, 0.0f);
        store_some(ACTIVATE_BWD(d * open, v), dx + c, n - c);
        store_some(d * ACTIVATE(v), dgate + first + c, n - c);
#else
        store_some(ACTIVATE_BWD(d, v), dx + c, n - c);
#endif
    }
}
