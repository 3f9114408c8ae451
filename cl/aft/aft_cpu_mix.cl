// SPDX-License-Identifier: MIT
// Attention-free mixing, CPU variant, last pass: y = sigmoid(q) * B / A, or backward dv = e^k A and
// dk = v dv - e^k B.  Host side: lib/op/aft/aft_cpu.c
//
//   Work      one work-item = a block of ROWS target rows, for `group` lanes of channels, which
//             share its weights
//   Memory    reads targets once, packed sources of the blocks that the window (or the mask)
//             reaches once, writes results once; the sources themselves are read only where a
//             product of factors will not do.
//             Local memory: the weights of `segment` source blocks; with more than one segment also
//             the lanes' sums meanwhile
//   Numerics  a lane takes the product of factors where ranges allow it (aft/aft_cpu_product.clh),
//             else running maxima (aft/aft_cpu_exact.clh); a row that sees nothing gives 0
//
//   Macro     Meaning                                                       Values
//   VW        channels of a lane                                            16, 8, 4
//   LS        work-group size                                               1
//   ROWS      rows of a block                                               12
//   PANEL     blocks of a panel                                             8
//   BACKWARD  targets are keys, sources queries                             0, 1
//   MASKED    a mask tensor says what is seen, at any distance              0, 1

#include "aft/aft_cpu_exact.clh"
#include "aft/aft_cpu_product.clh"
#include "aft/aft_cpu_weights.clh"
#include "aft/aft_source.clh"

// Sums kept from one segment to the next.
LOCAL_INLINE void mix_store(const struct mix *s, __local float *to)
{
    for (int r = 0; r < ROWS; ++r) {
        VSTORE(s->max_exponent[r], to + r * VW);
        VSTORE(s->a[r], to + (ROWS + r) * VW);
        VSTORE(s->b[r], to + (2 * ROWS + r) * VW);
    }
}

LOCAL_INLINE void mix_load(struct mix *s, __local const float *from)
{
    for (int r = 0; r < ROWS; ++r) {
        s->max_exponent[r] = VLOAD(from + r * VW);
        s->a[r] = VLOAD(from + (ROWS + r) * VW);
        s->b[r] = VLOAD(from + (2 * ROWS + r) * VW);
    }
}

// A block of target rows: those there are, the source blocks [from, to) they have biases to, their
// largest biases and e^-peak.  scaled: that and e^(outside - max_exponent) stay in float's range by
// themselves, not only as a product.
struct targets {
    int t0, rows, from, to;
    float peak[ROWS], scale[ROWS], lowest;
    int scaled;
};

static inline void targets_find(struct targets *x, const struct bias *w, int block)
{
    float highest = -80.0f;
    x->t0 = block * ROWS;
    x->rows = min(ROWS, w->steps - x->t0);
    bias_region(w, x->t0, x->rows, ROWS, &x->from, &x->to);
    weights_peaks(w, x->t0, x->from * ROWS, min(x->to * ROWS, w->steps), x->peak);
    x->lowest = 80.0f;
    for (int r = 0; r < ROWS; ++r) {
        x->lowest = fmin(x->lowest, x->peak[r]);
        highest = fmax(highest, x->peak[r]);
        x->scale[r] = x->peak[r] == 0.0f ? 1.0f : exp_f(-x->peak[r]);
    }
    x->scaled = x->lowest >= -5.0f && x->lowest <= 20.0f && highest <= 80.0f;
}

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

// Adds the source blocks [s0, s1) of one lane; starts when they are the first.  True: the sums are
// those of a product.
LOCAL_INLINE bool add_segment(struct mix *s, const struct targets *x, const struct outside *o,
                              __global const float *packed, __global const float *ranges,
                              const struct source *raw, const struct bias *w,
                              __local const float *weights, int s0, int s1, ulong seen)
{
    const int panel = x->from / PANEL, panel_end = (x->to - 1) / PANEL + 1;
    const bool product = product_holds(ranges, panel, panel_end, o, x->lowest);

    if (product) {
        if (s0 == x->from)
            product_start(s, VLOAD(ranges + panel * 2 * VW), o, x->peak, x->scaled ? x->scale : 0);
        product_segment(s, packed, ranges, weights, s0, s1, seen);
    } else {
        if (s0 == x->from)
            exact_start(s, o);
        exact_segment(s, raw, w, x->t0, x->peak, weights, s0, s1, seen);
    }
    return product;
}

// pos_bias: see struct bias
// scratch: from aft_cpu_sources and, without a mask, aft_scan
// weights: (segment * ROWS + VW) * ROWS floats; spilled: 3 * ROWS * VW per lane of the group, or 4
// bytes
KERNEL void aft_cpu_mix(TARGET_PARAMS, SOURCE_PARAMS, __global const float *restrict scratch,
                        long lane_floats, long ranges_at, long before_at, long after_at,
                        BIAS_PARAMS, int steps, int batch, int channels, int lane0, int lanes,
                        int window, int causal, int group, int segment, __local float *weights,
                        __local float *spilled)
{
    // Late rows first: under a causal mask and a wide window they are the long ones.
    const int place = get_group_id(0);
    const int block = causal < 0 ? place : (int)get_num_groups(0) - 1 - place;
    const int lane_first = get_group_id(1) * group, lane_end = min(lane_first + group, lanes);
    const struct bias w = BIAS_OF_ARGUMENTS;
    struct targets x;
    targets_find(&x, &w, block);

    for (int s0 = x.from; s0 < x.to; s0 += segment) {
        const int s1 = min(s0 + segment, x.to);
        const ulong seen = weights_pack(&w, x.t0, s0 * ROWS, s1 * ROWS, x.peak, weights);

        for (int lane = lane_first; lane < lane_end; ++lane) {
            const int l = lane0 + lane;
            __global const float *packed = scratch + lane * lane_floats;
            __local float *spill = spilled + (lane - lane_first) * 3 * ROWS * VW;
            const struct source raw = SOURCE_AT(l);
            const struct outside o = outside_load(&x, packed + before_at, packed + after_at, &w);
            struct mix s;

            if (s0 > x.from)
                mix_load(&s, spill);
            const bool product = add_segment(&s, &x, &o, packed, packed + ranges_at, &raw, &w,
                                             weights, s0, s1, seen);
            if (s1 < x.to) {
                mix_store(&s, spill);
                continue;
            }
            const struct target to = TARGET_AT(l);
            for (int r = 0; r < x.rows; ++r)
                target_store(&to, x.t0 + r,
                             product ? s.max_exponent[0] + (FV)(x.peak[r]) : s.max_exponent[r],
                             s.a[r], s.b[r]);
        }
    }
}
