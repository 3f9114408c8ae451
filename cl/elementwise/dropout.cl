// SPDX-License-Identifier: MIT
// Dropout of an array, with an optional residual.  Host side: lib/op/elementwise/dropout.c
//
//   y = mask x / (1 - p) [+ residual]
//
//   Work      a work-group takes `per_group` consecutive spans of `width` elements; work-item i takes
//             blocks i, i + LS ... of four elements, or with LS = 1 VW blocks at a time
//   Memory    reads each input once, writes y once; no mask is stored
//   Numerics  one rounding of the product, one of the sum
//
//   Macro     Meaning              Values
//   RESIDUAL  a residual is added  0 | 1

#include "common/dropout.clh"

#ifndef RESIDUAL
#error "RESIDUAL: whether a residual is added"
#endif

#if LS == 1 && VW > 1
static inline void drop_span(const struct dropout *d, ulong block, __global const float *x,
                             __global const float *residual, __global float *y, int n)
{
    for (int c = 0; c < n; c += 4 * VW) {
        FV v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = c + k * VW < n ? load_some(x + c + k * VW, n - c - k * VW, 0.0f) : (FV)(0.0f);
        drop_vectors(d, block + c / 4, v);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int at = c + k * VW;
            if (at >= n)
                break;
            if (RESIDUAL)
                v[k] += load_some(residual + at, n - at, 0.0f);
            store_some(v[k], y + at, n - at);
        }
    }
}
#else
static inline float4 load_block(__global const float *x, int n)
{
    if (n >= 4)
        return vload4(0, x);
    return (float4)(x[0], n > 1 ? x[1] : 0.0f, n > 2 ? x[2] : 0.0f, 0.0f);
}

static inline void drop_span(const struct dropout *d, ulong block, __global const float *x,
                             __global const float *residual, __global float *y, int n)
{
    for (int c = 4 * (int)get_local_id(0); c < n; c += 4 * LS) {
        float4 v = drop_four(d, block + c / 4, load_block(x + c, n - c));
        if (RESIDUAL)
            v += load_block(residual + c, n - c);
        if (n - c >= 4) {
            vstore4(v, 0, y + c);
        } else {
            y[c] = v.s0;
            if (n - c > 1)
                y[c + 1] = v.s1;
            if (n - c > 2)
                y[c + 2] = v.s2;
        }
    }
}
#endif

// Arrays: [count], in spans of `width`; the last may be shorter.  The mask's first block is first_block, plus
// position[0] * all_blocks if has_position.  After every part_spans spans it skips gap_blocks blocks.
KERNEL void dropout_spans_fwd(__global const float *restrict x,
                              __global const float *restrict residual, __global float *restrict y,
                              long count, int width, int per_group,
                              __global const int *restrict position, int has_position,
                              long all_blocks, long first_block, long part_spans, long gap_blocks,
                              DROPOUT_PARAMS)
{
    const struct dropout d = DROPOUT_OF;
    const long blocks = (width + 3) / 4, first = (long)get_group_id(0) * per_group;
    const long before = first_block + (has_position ? position[0] * all_blocks : 0);

    for (long span = first; span < first + per_group && span * width < count; span++) {
        const long gaps = gap_blocks ? span / part_spans * gap_blocks : 0;
        const long block = before + span * blocks + gaps;

        drop_span(&d, (ulong)block, x + span * width, residual + span * width, y + span * width,
                  (int)min((long)width, count - span * width));
    }
}
