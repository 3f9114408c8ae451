// SPDX-License-Identifier: MIT
// Attention-free mixing, CPU variant, last pass: y = sigmoid(q) * B / A, or backward dv = e^k A and
// dk = v dv - e^k B.  Host side: lib/op/aft/aft_cpu.c
//
//   Work      one work-item = `blocks` blocks of ROWS target rows, for `group` lanes of channels
//   Memory    reads targets once, writes results once.  For each block reads the packed sources of
//             the blocks that the window (or the mask) reaches, which for all but the first block
//             are in a cache, and its weights; the sources themselves are read only where a product
//             of factors will not do
//   Numerics  a lane takes the product of factors where ranges allow it (aft/aft_cpu_product.clh),
//             else running maxima (aft/aft_cpu_exact.clh); a row that sees nothing gives 0

#include "aft/aft_cpu_exact.clh"
#include "aft/aft_cpu_product.clh"
#include "aft/aft_source.clh"

// before, after: the lane's sums of blocks before and after each
static inline struct outside outside_load(const struct targets *x, __global const float *before,
                                          __global const float *after, const struct bias *w)
{
    struct outside o = {sums_of_none(), sums_of_none()};
#if !MASKED
    if (w->causal >= 0 && x->from > 0)
        o.before = sums_load(before, x->from, VW);
    if (w->causal <= 0 && x->to * ROWS < w->steps)
        o.after = sums_load(after, x->to - 1, VW);
#endif
    return o;
}

// The sums of one lane over the region, in *s.  True: those of a product.
LOCAL_INLINE bool mix_lane(struct mix *s, const struct targets *x, __global const float *packed,
                           __global const float *ranges, const struct outside *o,
                           const struct source *raw, const struct bias *w)
{
    const int panel = x->from / PANEL, panel_end = (x->to - 1) / PANEL + 1;
    const bool product = product_holds(ranges, panel, panel_end, o, x->packed[AT_LOWEST]);

    if (product) {
        product_start(s, VLOAD(ranges + panel * 2 * VW), o, x);
        product_region(s, x, packed, ranges);
    } else {
        exact_start(s, o);
        exact_region(s, x, raw, w);
    }
    return product;
}

// pos_bias: see struct bias
// scratch: from aft_cpu_sources and, without a mask, aft_scan; at weights_at, `pitch` floats for
// each of n_blocks blocks from block0 on, from aft_cpu_weights
KERNEL void aft_cpu_mix(TARGET_PARAMS, SOURCE_PARAMS, __global const float *restrict scratch,
                        long lane_floats, long ranges_at, long before_at, long after_at,
                        long weights_at, long pitch, int block0, int n_blocks, BIAS_PARAMS,
                        int steps, int batch, int channels, int lane0, int lanes, int window,
                        int causal, int group, int blocks)
{
    // Late rows first: under a causal mask and a wide window they are the long ones.
    const int place = get_group_id(0);
    const int first = (causal < 0 ? place : (int)get_num_groups(0) - 1 - place) * blocks;
    const int lane_first = get_group_id(1) * group, lane_end = min(lane_first + group, lanes);
    const struct bias w = BIAS_OF_ARGUMENTS;

    for (int lane = lane_first; lane < lane_end; ++lane) {
        const int l = lane0 + lane;
        __global const float *packed = scratch + lane * lane_floats;
        const struct source raw = SOURCE_AT(l);
        const struct target to = TARGET_AT(l);

        for (int i = first; i < min(first + blocks, n_blocks); ++i) {
            const struct targets x =
                targets_at(&w, block0 + i, scratch + weights_at + i * pitch, pitch);
            const struct outside o = outside_load(&x, packed + before_at, packed + after_at, &w);
            struct mix s;
            const bool product = mix_lane(&s, &x, packed, packed + ranges_at, &o, &raw, &w);

            for (int r = 0; r < x.rows; ++r)
                target_store(&to, x.t0 + r,
                             product ? s.max_exponent[0] + (FV)(x.packed[AT_PEAK + r])
                                     : s.max_exponent[r],
                             s.a[r], s.b[r]);
        }
    }
}
