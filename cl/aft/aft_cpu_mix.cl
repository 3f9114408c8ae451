// SPDX-License-Identifier: MIT
// Attention-free mixing, CPU variant, last pass: y = sigmoid(q) * B / A, or backward dv = e^k A and
// dk = v dv - e^k B.  Host side: lib/op/aft/aft_cpu.c
//
//   Work      one work-item = `blocks` blocks of ROWS target rows, for `group` lanes of channels
//   Memory    reads targets once, writes results once.  For each block reads its weights, and the packed
//             sources inside the window (or mask), cached by the first block; reads the unpacked sources
//             only if a product of factors does not hold
//   Numerics  a lane uses the product of factors if ranges allow it (aft/aft_cpu_product.clh), else
//             running maxima (add_region_exact()); a row that sees nothing gives 0

#include "aft/aft_cpu_product.clh"
#include "aft/aft_source.clh"

// -- sums for any finite input, with a running maximum per row, as in online softmax

// A block of n sources, and their range.
struct block {
    FV kappa[ROWS], beta[ROWS];
#if BACKWARD
    FV alpha[ROWS];
#define TIMES_ALPHA(e, x, j) ((e) * (x)->alpha[j])
#else
#define TIMES_ALPHA(e, x, j) (e)
#endif
    FV max_exponent, bottom;
    int n;
};

static inline void load_block(struct block *x, const struct source *from, int t0, int steps)
{
    x->n = min(ROWS, steps - t0);
    x->max_exponent = (FV)(NOTHING);
    x->bottom = (FV)(-NOTHING);
    for (int t = 0; t < x->n; ++t) {
        x->kappa[t] = source_kappa(from, t0 + t);
        x->beta[t] = source_beta(from, t0 + t);
#if BACKWARD
        x->alpha[t] = source_alpha(from, t0 + t);
#endif
        x->max_exponent = max_v(x->kappa[t], x->max_exponent);
        x->bottom = min_v(x->kappa[t], x->bottom);
    }
}

// The smallest weight of a block, and the smallest of its rows' largest weights.
LOCAL_INLINE void find_weight_range(__global const float *weights, int n, float *min_ret,
                                    float *min_peak_ret)
{
    float lowest = 1.0f, min_peak = 1.0f;
    for (int r = 0; r < ROWS; ++r) {
        float max_exponent = 0.0f;
        for (int j = 0; j < n; ++j) {
            lowest = fmin(lowest, weights[j * ROWS + r]);
            max_exponent = fmax(max_exponent, weights[j * ROWS + r]);
        }
        min_peak = fmin(min_peak, max_exponent);
    }
    *min_ret = lowest;
    *min_peak_ret = min_peak;
}

static inline void start_exact(struct mix *s, const struct outside *o)
{
    const struct sums x = sums_merge(o->before, o->after);
    for (int r = 0; r < ROWS; ++r) {
        s->max_exponent[r] = x.max_exponent;
        s->a[r] = x.a;
        s->b[r] = x.b;
    }
}

// Adds the block as a product, relative to its own maximum.
LOCAL_INLINE void add_block_product(struct mix *s, const struct block *x,
                                    __global const float *peak, __global const float *weights)
{
    FV alpha[ROWS], beta[ROWS];
    for (int j = 0; j < x->n; ++j) {
        const FV e = exp_nonpos_v(x->kappa[j] - x->max_exponent);
        alpha[j] = TIMES_ALPHA(e, x, j);
        beta[j] = e * x->beta[j];
    }
    for (int r = 0; r < ROWS; ++r) {
        FV a = (FV)(0.0f), b = (FV)(0.0f), sum, error;
        for (int j = 0; j < x->n; ++j) {
            a += (FV)(weights[j * ROWS + r]) * alpha[j];
            b += (FV)(weights[j * ROWS + r]) * beta[j];
        }
        two_sum(x->max_exponent, (FV)(peak[r]), &sum, &error);
        const FV max_exponent = max_v(sum, s->max_exponent[r]),
                 old = exp_nonpos_v(s->max_exponent[r] - max_exponent),
                 now = exp_nonpos_v((sum - max_exponent) + error);
        s->a[r] = s->a[r] * old + a * now;
        s->b[r] = s->b[r] * old + b * now;
        s->max_exponent[r] = max_exponent;
    }
}

// Adds the block with a separate exponential per pair.
static inline void add_block_elements(struct mix *s, const struct block *x, const struct bias *w,
                                      int t0, int source)
{
    for (int r = 0; r < ROWS; ++r) {
        FV sum[ROWS], error[ROWS], max_exponent = s->max_exponent[r];
        for (int j = 0; j < x->n; ++j) {
            two_sum_seen(x->kappa[j], load_bias(w, min(t0 + r, w->steps - 1), source + j), &sum[j],
                         &error[j]);
            max_exponent = max_v(sum[j], max_exponent);
        }
        const FV old = exp_nonpos_v(s->max_exponent[r] - max_exponent);
        FV a = s->a[r] * old, b = s->b[r] * old;
        for (int j = 0; j < x->n; ++j) {
            const FV e = exp_nonpos_v((sum[j] - max_exponent) + error[j]);
            a += TIMES_ALPHA(e, x, j);
            b += e * x->beta[j];
        }
        s->a[r] = a;
        s->b[r] = b;
        s->max_exponent[r] = max_exponent;
    }
}

// Adds the sources of the region, like add_region_product().
LOCAL_INLINE void add_region_exact(struct mix *s, const struct targets *targets,
                                   const struct source *lane, const struct bias *w)
{
    for (int block = targets->from; block < targets->to; ++block) {
        if (MASKED && targets->seen[block - targets->from] == 0.0f)
            continue;
        __global const float *own =
            targets->packed + AT_WEIGHTS + (block - targets->from) * ROWS * ROWS;
        struct block x;
        float lowest, min_peak;
        load_block(&x, lane, block * ROWS, w->steps);
        find_weight_range(own, x.n, &lowest, &min_peak);
        // A product holds if some term of each row is at least e^-REACH of the block's reference:
        // all weights are, or the row's largest weight times its source's e^kappa is.
        if (lowest >= EXP_MINUS_REACH ||
            all(x.max_exponent - x.bottom <= (FV)(REACH + log_f(min_peak))))
            add_block_product(s, &x, targets->packed + AT_PEAK, own);
        else
            add_block_elements(s, &x, w, targets->t0, block * ROWS);
    }
}

// -- a lane

// before, after: the lane's sums of blocks before and after each
static inline struct outside find_outside(const struct targets *x, __global const float *before,
                                          __global const float *after, const struct bias *w)
{
    struct outside o = {empty_sums(), empty_sums()};
#if !MASKED
    if (w->causal >= 0 && x->from > 0)
        o.before = sums_load(before, x->from, VW);
    if (w->causal <= 0 && x->to * ROWS < w->steps)
        o.after = sums_load(after, x->to - 1, VW);
#endif
    return o;
}

// Sums one lane over the region.  Returns whether as a product.
LOCAL_INLINE bool mix_lane(struct mix *s, const struct targets *x, __global const float *packed,
                           __global const float *ranges, const struct outside *o,
                           const struct source *raw, const struct bias *w)
{
    const int panel = x->from / PANEL, panel_end = (x->to - 1) / PANEL + 1;
    const bool product = product_holds(ranges, panel, panel_end, o, x->packed[AT_LOWEST]);

    if (product) {
        start_product(s, VLOAD(ranges + panel * 2 * VW), o, x);
        add_region_product(s, x, packed, ranges);
    } else {
        start_exact(s, o);
        add_region_exact(s, x, raw, w);
    }
    return product;
}

// pos_bias: see struct bias
// scratch: from aft_cpu_sources and, without a mask, aft_scan; at weights_at, `pitch` floats for
// each of n_blocks blocks from block0 on, from aft_cpu_weights
KERNEL void aft_cpu_mix(TARGET_PARAMS, SOURCE_PARAMS, __global const float *restrict scratch,
                        long lane_floats, long ranges_at, long before_at, long after_at,
                        long weights_at, long pitch, int block0, int n_blocks, BIAS_PARAMS,
                        RANGE_PARAMS, int window, int causal, int group, int blocks)
{
    // Late rows first, as they take longest under a causal mask with a wide window.
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
                find_targets(&w, block0 + i, scratch + weights_at + i * pitch, pitch);
            const struct outside o = find_outside(&x, packed + before_at, packed + after_at, &w);
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
