// SPDX-License-Identifier: MIT
// Adam.  Host side: lib/op/train/adam.c, which has the formulas.
//
//   Work      rates: one work-item; step: a work-group takes `per_group` consecutive elements of a part, work-item
//             i vectors i, i + LS ... of them
//   Memory    step: reads four arrays, writes three, which may be the same; AMSGrad one more of each
//   Numerics  1 - b^t as -expm1(t log b), accurate from the first step on
//
//   Macro    Meaning                                Values
//   AMSGRAD  keeps the largest mean square so far   0, 1

#define ALIGNED_VECTORS
#include "common/parts.clh"
#include "common/vector.clh"

#ifndef AMSGRAD
#error "AMSGRAD: whether the largest mean square so far is kept"
#endif

// taken: [1], steps taken; given: [1], the rate if is_given, else `rate`; rates: [3]
KERNEL void adam_rates_fwd(__global const int *restrict taken, __global const float *restrict given,
                           __global float *restrict rates, int is_given, float log_beta1,
                           float log_beta2, float rate, int optimized, float shrink,
                           float scheduled_decay)
{
    const float t = (float)*taken + 1.0f;
    const float correction1 = -expm1(t * log_beta1), correction2 = sqrt(-expm1(t * log_beta2));
    const float now = is_given ? *given : rate;

    if (get_local_id(0) > 0)
        return;
    rates[0] = optimized ? now * correction2 / correction1 : now / correction1;
    rates[1] = optimized ? 1.0f : 1.0f / correction2;
    rates[2] = shrink + scheduled_decay * now;
}

struct step {
    FV p, m, v, largest;
};

struct constants {
    float rate, scale, beta1, rest1, beta2, rest2, eps, decay, shrink;
};

static inline struct step compute_step(struct step old, FV g, const struct constants *k)
{
    struct step s;
    const FV p =
        k->shrink != 0.0f ? old.p - old.p * k->shrink : old.p; // keeps infinity if shrink is 0
    g = k->decay != 0.0f ? g + p * k->decay : g;
    s.m = old.m * k->beta1 + g * k->rest1;
    s.v = old.v * k->beta2 + g * g * k->rest2;
    s.largest = s.v < old.largest ? old.largest : s.v;
    const FV root = sqrt(AMSGRAD ? s.largest : s.v);
    s.p = p - k->rate * s.m / (root * k->scale + k->eps);
    return s;
}

#define STEP_PARAMS(i)                                                                             \
    , __global float *p_##i, __global const float *g_##i, __global float *m_##i,                   \
        __global float *v_##i, __global float *largest_##i PART_PARAMS(i)
#define TAKE(i) IF_IN_PART(i) p = p_##i, g = g_##i, m = m_##i, v = v_##i, largest = largest_##i;

// in_place: the step overwrites its inputs, reading each element before writing it.  factor: [1], multiplies the
// gradients if has_factor.  A NaN rate leaves all arrays unchanged.
KERNEL void adam_step_fwd(__global const float *restrict rates,
                          __global const float *restrict factor, __global float *p_new,
                          __global float *m_new, __global float *v_new, __global float *largest_new,
                          int in_place, int has_factor, float beta1, float rest1, float beta2,
                          float rest2, float eps, float decay PARTS(STEP_PARAMS))
{
    const struct constants k = {rates[0], rates[1], beta1, rest1,   beta2,
                                rest2,    eps,      decay, rates[2]};
    const float gain = has_factor ? *factor : 1.0f;
    __global float *p, *m, *v, *largest;
    __global const float *g;
    struct part part;

    PARTS(TAKE)
    const long first = part_first(&part);
    const int n = part_count(&part), skip = isnan(k.rate);

    if (in_place)
        p_new = p, m_new = m, v_new = v, largest_new = largest;
    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const long at = first + c;
        const int remaining = n - c;
        struct step s = {load_some(p + at, remaining, 0.0f), load_some(m + at, remaining, 0.0f),
                         load_some(v + at, remaining, 0.0f),
                         AMSGRAD ? load_some(largest + at, remaining, 0.0f) : (FV)(0.0f)};
        if (!skip)
            s = compute_step(s, load_some(g + at, remaining, 0.0f) * gain, &k);
        store_some(s.p, p_new + at, remaining);
        store_some(s.m, m_new + at, remaining);
        store_some(s.v, v_new + at, remaining);
#if AMSGRAD
        store_some(s.largest, largest_new + at, remaining);
#endif
    }
}
