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
//             else running maxima (exact_region()); a row that sees nothing gives 0

#include "aft/aft_cpu_product.clh"
#include "aft/aft_source.clh"

// -- sums for any finite input: each row keeps a running maximum, as in online softmax; source blocks come one by one

// A block of sources: those there are, and their range.
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

static inline void block_load(struct block *x, const struct source *from, int t0, int steps)
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

// The least weight of a block, and the least of its rows' largest: tells when a product is good
// enough.
LOCAL_INLINE void weights_range(__global const float *weights, int n, float *min_ret,
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

static inline void exact_start(struct mix *s, const struct outside *o)
{
    const struct sums x = sums_merge(o->before, o->after);
    for (int r = 0; r < ROWS; ++r) {
        s->max_exponent[r] = x.max_exponent;
        s->a[r] = x.a;
        s->b[r] = x.b;
    }
}

// The block as a product, relative to its own maximum.
LOCAL_INLINE void exact_add_product(struct mix *s, const struct block *x,
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

// Each exponential by itself.
static inline void exact_add_elements(struct mix *s, const struct block *x, const struct bias *w,
                                      int t0, int source)
{
    for (int r = 0; r < ROWS; ++r) {
        FV sum[ROWS], error[ROWS], max_exponent = s->max_exponent[r];
        for (int j = 0; j < x->n; ++j) {
            two_sum_seen(x->kappa[j], bias_one(w, min(t0 + r, w->steps - 1), source + j), &sum[j],
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

// Adds the sources of the region, as product_region() does.
LOCAL_INLINE void exact_region(struct mix *s, const struct targets *targets,
                               const struct source *lane, const struct bias *w)
{
    for (int block = targets->from; block < targets->to; ++block) {
        if (MASKED && targets->seen[block - targets->from] == 0.0f)
            continue;
        __global const float *own =
            targets->packed + AT_WEIGHTS + (block - targets->from) * ROWS * ROWS;
        struct block x;
        float lowest, min_peak;
        block_load(&x, lane, block * ROWS, w->steps);
        weights_range(own, x.n, &lowest, &min_peak);
        // Some term of each row is at least e^-REACH of the block's reference: all weights are, or
        // the row's largest weight and its source's kappa together.
        if (lowest >= EXP_MINUS_REACH ||
            all(x.max_exponent - x.bottom <= (FV)(REACH + log_f(min_peak))))
            exact_add_product(s, &x, targets->packed + AT_PEAK, own);
        else
            exact_add_elements(s, &x, w, targets->t0, block * ROWS);
    }
}

// -- a lane

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
                        RANGE_PARAMS, int window, int causal, int group, int blocks)
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
