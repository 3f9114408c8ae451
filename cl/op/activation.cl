// SPDX-License-Identifier: MIT
// Elementwise activations.  Host side: lib/op/activation.c
//
//   Work      a group takes `per_group` consecutive elements, or rows, work-item i vectors i, i +
//   LS
//             ... of them
//   Memory    reads and writes each element once, the bias once for each row, from cache
//   Numerics  cl/common/math.clh; NaN stays NaN
//
//   Macro     Meaning                                       Values
//   KIND      attncl_activation: identity, GELU, ReLU,      0 .. 5
//             sigmoid, tanh, SiLU
//   VW        floats in a vector                            1 | 4 | 8 | 16
//   LS        work-items in a group, a power of two         1 .. 256

#include "common/activation.clh"

#ifndef LS
#error "LS: work-items in a group"
#endif

KERNEL void activation_flat_fwd(__global const float *restrict x, __global float *restrict y,
                                long count, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);
    int c = VW * (int)get_local_id(0);

    x += first;
    y += first;
    for (; c + VW <= n; c += VW * LS) {
        const FV v = VLOAD(x + c);
        VSTORE(ACTIVATE(v), y + c);
    }
    if (c < n) {
        const FV v = load_part(x + c, n - c, 0.0f);
        store_part(ACTIVATE(v), y + c, n - c);
    }
}

// y = f(x + bias); x, y: [rows, width], bias: [width]
KERNEL void activation_rows_fwd(__global const float *restrict x,
                                __global const float *restrict bias, __global float *restrict y,
                                int width, long rows, int per_group)
{
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);

    x += first * width;
    y += first * width;
    for (long row = first; row < end; ++row, x += width, y += width) {
        int c = VW * (int)get_local_id(0);
        for (; c + VW <= width; c += VW * LS) {
            const FV v = VLOAD(x + c) + VLOAD(bias + c);
            VSTORE(ACTIVATE(v), y + c);
        }
        if (c < width) {
            const FV v = load_part(x + c, width - c, 0.0f) + load_part(bias + c, width - c, 0.0f);
            store_part(ACTIVATE(v), y + c, width - c);
        }
    }
}
