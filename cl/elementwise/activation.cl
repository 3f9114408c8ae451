// SPDX-License-Identifier: MIT
// Elementwise activations.  Host side: lib/op/elementwise/activation.c
//
//   Work      flat: a work-group takes `per_group` consecutive elements, work-item i vectors i, i + LS ...
//             of them; rows: LANES_PER_ROW work-items share a row
//   Memory    reads and writes each element once, the bias once per row, from cache
//   Numerics  cl/common/math.clh; NaN stays NaN

#include "common/prefetch.clh"
#include "common/row_tiling.clh"

#include "common/activation.clh"

// Floats.  Without prefetch the long arithmetic keeps a CPU from reading ahead: GELU of 256 MiB takes 0.4 of the
// time with it; arrays in cache take the same.
#define PREFETCH_DISTANCE 256

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
        prefetch_l2(x + c + PREFETCH_DISTANCE);
        VSTORE(ACTIVATE(v), y + c);
    }
    if (c < n) {
        const FV v = load_part(x + c, n - c, 0.0f);
        store_part(ACTIVATE(v), y + c, n - c);
    }
}

static inline FV activate(FV v)
{
    return ACTIVATE(v);
}

// y = f(x + bias); x, y: [rows, width], bias: [width]
KERNEL void activation_rows_fwd(__global const float *restrict x,
                                __global const float *restrict bias, __global float *restrict y,
                                int width, long rows, int per_group)
{
#if LS == 1
    // MAP_ROW_VECS() expanded by hand is 3 % faster.
    const long first = (long)get_group_id(0) * per_group;
    const long end = min(first + per_group, rows);

    x += first * width;
    y += first * width;
    for (long row = first; row < end; ++row, x += width, y += width) {
        int c = 0;
        for (; c + VW <= width; c += VW) {
            const FV v = VLOAD(x + c) + VLOAD(bias + c);
            VSTORE(ACTIVATE(v), y + c);
        }
        if (c < width) {
            const FV v = load_part(x + c, width - c, 0.0f) + load_part(bias + c, width - c, 0.0f);
            store_part(ACTIVATE(v), y + c, width - c);
        }
    }
#else
    FOR_ROWS (row, rows, per_group) {
        __global const float *xr = x + row * width;
        __global float *yr = y + row * width;

        MAP_ROW_VECS(
            c, n, row < rows ? width : 0, prefetch_l2(xr + c + PREFETCH_DISTANCE); row_vec_store(
                activate(row_vec_load(xr, c, n, 0.0f) + row_vec_load(bias, c, n, 0.0f)), yr, c, n));
    }
#endif
}
