// SPDX-License-Identifier: MIT
// AFT-local, CPU form, last pass: y = sigmoid(q) * B / A.  Host side: lib/op/aft_local.c
//
//   Work      one work-item = a block of ROWS target rows, for `group` lanes of channels, which
//             share its weights
//   Memory    reads q once, packed sources of the blocks that the window (or the mask) reaches
//             once, writes y once; k and v are read only where a product of factors will not do.
//             Local memory: the weights of `segment` source blocks; with more than one segment also
//             the lanes' sums meanwhile
//   Numerics  a lane takes the product of factors where ranges allow it (common/aft_product.clh),
//             else running maxima (common/aft_exact.clh); a row that sees nothing gives 0
//
//   Macro     Meaning                                                        Values
//   VW        channels of a lane                                             16, 8, 4
//   LS        work-items in a group                                          1
//   ROWS      rows of a block                                                12
//   PANEL     blocks of a panel                                              8
//   MASKED    a mask tensor says what is seen, at any distance                0, 1
//   PATH      0: by range; 1: running maxima always; 2: element by element   0; 1, 2 for tests

#ifndef VW
#error "VW: channels of a lane"
#endif
#ifndef LS
#error "LS: work-items in a group"
#endif
#ifndef ROWS
#error "ROWS: rows of a block"
#endif
#ifndef PANEL
#error "PANEL: blocks of a panel"
#endif
#ifndef MASKED
#error "MASKED: a mask tensor says what is seen"
#endif
#ifndef PATH
#error "PATH: how sums are formed"
#endif

#include "common/aft_exact.clh"
#include "common/aft_product.clh"
#include "common/aft_weights.clh"

// Sums kept from one segment to the next.
static inline void mix_store(const struct mix *s, __local float *to)
{
    for (int r = 0; r < ROWS; ++r) {
        VSTORE(s->top[r], to + r * VW);
        VSTORE(s->a[r], to + (ROWS + r) * VW);
        VSTORE(s->b[r], to + (2 * ROWS + r) * VW);
    }
}

static inline void mix_load(struct mix *s, __local const float *from)
{
    for (int r = 0; r < ROWS; ++r) {
        s->top[r] = VLOAD(from + r * VW);
        s->a[r] = VLOAD(from + (ROWS + r) * VW);
        s->b[r] = VLOAD(from + (2 * ROWS + r) * VW);
    }
}

// q, y: the lane's channels of target row 0
static inline void mix_finish(const struct mix *s, __global const float *q, long q_row,
                              __global float *y, long y_row, int rows, int width)
{
    for (int r = 0; r < rows; ++r)
        lane_store(gated_mean(lane_load(q + r * q_row, width), s->a[r], s->b[r]), y + r * y_row,
                   width);
}

// e^-peak per row; false when it and e^(outside - top) might leave float's range although their
// product does not.
static inline int peaks_scale(const float peak[ROWS], float scale[ROWS], float *lowest_ret)
{
    float low = 80.0f, high = -80.0f;
    for (int r = 0; r < ROWS; ++r) {
        low = fmin(low, peak[r]);
        high = fmax(high, peak[r]);
        scale[r] = peak[r] == 0.0f ? 1.0f : exp(-peak[r]);
    }
    *lowest_ret = low;
    return low >= -5.0f && low <= 20.0f && high <= 80.0f;
}

// q, k, v: [T, batch] rows of `channels`; y: the same, contiguous; pos_bias: [n, n]
// scratch: from aft_local_sources_fwd and, without a mask, aft_local_scan_fwd
// weights: (segment * ROWS + VW) * ROWS floats; parked: 3 * ROWS * VW per lane of the group, or 4
// bytes
KERNEL void aft_local_mix_fwd(__global const float *restrict q, long q_start, long q_stride,
                              __global const float *restrict k, long k_start, long k_stride,
                              __global const float *restrict v, long v_start, long v_stride,
                              __global float *restrict y, long y_start, long y_stride,
                              __global const float *restrict scratch, long lane_floats,
                              long ranges_at, long before_at, long after_at,
                              __global const float *restrict pos_bias, int n,
                              __global const uchar *restrict mask, long mask_start, long mask_row,
                              int mask_column, int steps, int batch, int channels, int lane0,
                              int lanes, int window, int causal, int group, int segment,
                              __local float *weights, __local float *parked)
{
    // Late rows first: under a causal mask and a wide window they are the long ones.
    const int blocks = get_num_groups(0), target = blocks - 1 - (int)get_group_id(0),
              t0 = target * ROWS;
    const int rows = min(ROWS, steps - t0), reach = max(window, 1);
    const int lane_first = get_group_id(1) * group, lane_end = min(lane_first + group, lanes);
    const struct bias w = {pos_bias,          n,        window,      causal,
                           mask + mask_start, mask_row, mask_column, steps};

    // The region: source blocks with a bias to any of the rows.
    int from = max(0, t0 - reach + 1) / ROWS,
        to = min(blocks, (t0 + rows - 1 + reach - 1) / ROWS + 1);
    if (causal)
        to = target + 1;
    if (MASKED) {
        from = 0;
        to = blocks;
    }

    float peak[ROWS], scale[ROWS], lowest;
    weights_peaks(&w, t0, from * ROWS, min(to * ROWS, steps), peak);
    const int scaled = peaks_scale(peak, scale, &lowest);

    for (int s0 = from; s0 < to; s0 += segment) {
        const int s1 = min(s0 + segment, to);
        const ulong seen = weights_pack(&w, t0, s0 * ROWS, s1 * ROWS, peak, weights);

        for (int lane = lane_first; lane < lane_end; ++lane) {
            __global const float *packed = scratch + lane * lane_floats,
                                 *ranges = packed + ranges_at;
            const int l = lane0 + lane, width = lane_width(l, channels);
            __local float *park = parked + (lane - lane_first) * 3 * ROWS * VW;
            struct outside o = {sums_of_none(), sums_of_none()};
            struct mix s;
            if (!MASKED && from > 0)
                o.before = sums_load(packed + before_at, from, VW);
            if (!MASKED && !causal && to < blocks)
                o.after = sums_load(packed + after_at, to - 1, VW);
            const int product =
                PATH == 0 && product_holds(ranges, from / PANEL, (to - 1) / PANEL + 1, &o, lowest);

            if (s0 > from)
                mix_load(&s, park);
            if (product) {
                if (s0 == from)
                    product_start(&s, VLOAD(ranges + from / PANEL * 2 * VW), &o, peak,
                                  scaled ? scale : 0);
                product_segment(&s, packed, ranges, weights, s0, s1, seen);
            } else {
                const struct source source = {k + k_start + lane_start(l, channels, k_stride),
                                              v + v_start + lane_start(l, channels, v_stride),
                                              (long)batch * k_stride, batch * v_stride, width};
                if (s0 == from)
                    exact_start(&s, &o);
                exact_segment(&s, &source, &w, t0, peak, weights, s0, s1, seen, PATH == 2);
            }

            if (s1 < to)
                mix_store(&s, park);
            else
                mix_finish(
                    &s,
                    q + q_start + (long)t0 * batch * q_stride + lane_start(l, channels, q_stride),
                    batch * q_stride,
                    y + y_start + (long)t0 * batch * y_stride + lane_start(l, channels, y_stride),
                    batch * y_stride, rows, width);
        }
    }
}
