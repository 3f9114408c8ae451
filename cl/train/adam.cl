// SPDX-License-Identifier: MIT
// Adam.  Host side: lib/op/train/adam.c, which has the formulas.
//
//   Work      rates: one work-item; step: a work-group takes `per_group` consecutive elements, work-item
//             i vectors i, i + LS ... of them
//   Memory    step: reads four arrays, writes three, which may be the same; AMSGrad one more of each
//   Numerics  1 - b^t as -expm1(t log b): right from the first step on
//
//   Macro    Meaning                                 Values
//   AMSGRAD  the largest mean square so far is kept  0, 1

#define ALIGNED_VECTORS
#include "common/vector.clh"

#ifndef AMSGRAD
#error "AMSGRAD: the largest mean square so far is kept"
#endif

// taken: [1], steps taken; given: [1], the rate where is_given; rates: [3]
KERNEL void adam_rates_fwd(__global const int *restrict taken, __global const float *restrict given,
                           __global float *restrict rates, int is_given, float log_beta1,
                           float log_beta2, float rate, int optimized, float shrink,
                           float scheduled_decay)
{
    const float t = (float)*taken + 1.0f;
    const float left1 = -expm1(t * log_beta1), left2 = sqrt(-expm1(t * log_beta2));
    const float now = is_given ? *given : rate;

    if (get_local_id(0) > 0)
        return;
    rates[0] = optimized ? now * left2 / left1 : now / left1;
    rates[1] = optimized ? 1.0f : 1.0f / left2;
    rates[2] = shrink + scheduled_decay * now;
}

struct step {
    FV p, m, v, largest;
};

struct constants {
    float rate, scale, beta1, rest1, beta2, rest2, eps, decay, shrink;
};

static inline struct step step_of(struct step old, FV g, const struct constants *k)
{
    struct step s;
    const FV p = k->shrink != 0.0f ? old.p - old.p * k->shrink : old.p; // an infinite p stays one
    g = k->decay != 0.0f ? g + p * k->decay : g;
    s.m = old.m * k->beta1 + g * k->rest1;
    s.v = old.v * k->beta2 + g * g * k->rest2;
    s.largest = s.v < old.largest ? old.largest : s.v;
    const FV root = sqrt(AMSGRAD ? s.largest : s.v);
    s.p = p - k->rate * s.m / (root * k->scale + k->eps);
    return s;
}

// An update gives the same array as old and new: each element is read before it is written.  A rate
// that is not a number leaves all as it was.
KERNEL void adam_step_fwd(__global const float *p, __global const float *restrict g,
                          __global const float *m, __global const float *v,
                          __global const float *largest, __global const float *restrict rates,
                          __global float *p_new, __global float *m_new, __global float *v_new,
                          __global float *largest_new, float beta1, float rest1, float beta2,
                          float rest2, float eps, float decay, long count, int per_group)
{
    const struct constants k = {rates[0], rates[1], beta1, rest1,   beta2,
                                rest2,    eps,      decay, rates[2]};
    const long first = (long)get_group_id(0) * per_group;
    const int n = (int)min((long)per_group, count - first);
    const int skip = isnan(k.rate);

    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const long at = first + c;
        const int some = n - c;
        struct step s = {load_some(p + at, some, 0.0f), load_some(m + at, some, 0.0f),
                         load_some(v + at, some, 0.0f),
                         AMSGRAD ? load_some(largest + at, some, 0.0f) : (FV)(0.0f)};
        if (!skip)
            s = step_of(s, load_some(g + at, some, 0.0f), &k);
        store_some(s.p, p_new + at, some);
        store_some(s.m, m_new + at, some);
        store_some(s.v, v_new + at, some);
#if AMSGRAD
        store_some(s.largest, largest_new + at, some);
#endif
    }
}
