// SPDX-License-Identifier: MIT
// Gradient descent with momentum.  Host side: lib/op/train/sgd.c, which has the formulas.
//
//   Work      rates: one work-item; step: a work-group takes `per_group` consecutive elements of a part, work-item
//             i vectors i, i + LS ... of them
//   Memory    step: reads two arrays, writes one, which may be the same; MOMENTUM one more of each
//   Numerics  about 6 roundings per element.  The first step does not read the buffer
//
//   Macro     Meaning                     Values
//   MOMENTUM  there is a momentum buffer  0, 1

#define ALIGNED_VECTORS
#include "common/parts.clh"
#include "common/vector.clh"

#ifndef MOMENTUM
#error "MOMENTUM: whether there is a momentum buffer"
#endif

// taken: [1], steps taken; given: [1], the rate if is_given, else `rate`; rates: [3]
KERNEL void sgd_rates_fwd(__global const int *restrict taken, __global const float *restrict given,
                          __global float *restrict rates, int is_given, float rate, float momentum,
                          float rest)
{
    const int first = *taken == 0;

    rates[0] = is_given ? *given : rate;
    rates[1] = first ? 0.0f : momentum;
    rates[2] = first ? 1.0f : rest;
}

#define STEP_PARAMS(i)                                                                             \
    , __global float *p_##i, __global const float *g_##i, __global float *buffer_##i PART_PARAMS(i)
#define TAKE(i) IF_IN_PART(i) p = p_##i, g = g_##i, buffer = buffer_##i;

// in_place: the step overwrites its inputs, reading each element before writing it.  factor: [1], multiplies the
// gradients if has_factor.  A NaN rate leaves all arrays unchanged.
KERNEL void sgd_step_fwd(__global const float *restrict rates,
                         __global const float *restrict factor, __global float *p_new,
                         __global float *buffer_new, int in_place, int has_factor, int has_buffer,
                         float decay, float momentum, int nesterov PARTS(STEP_PARAMS))
{
    const float rate = rates[0], gain = has_factor ? *factor : 1.0f;
    const int skip = isnan(rate);
#if MOMENTUM
    const float keep = has_buffer ? rates[1] : 0.0f, rest = has_buffer ? rates[2] : 1.0f;
#endif
    __global float *p, *buffer;
    __global const float *g;
    struct part part;

    PARTS(TAKE)
    const long first = part_first(&part);
    const int n = part_count(&part);

    if (in_place)
        p_new = p, buffer_new = buffer;
    for (int c = VW * (int)get_local_id(0); c < n; c += VW * LS) {
        const long at = first + c;
        const int remaining = n - c;
        const FV old = load_some(p + at, remaining, 0.0f);
        FV d = load_some(g + at, remaining, 0.0f) * gain;
        d = decay != 0.0f ? d + old * decay : d;
#if MOMENTUM
        FV b = d * rest;
        if (skip)
            b = has_buffer ? load_some(buffer + at, remaining, 0.0f) : (FV)(0.0f);
        else if (keep != 0.0f)
            b += load_some(buffer + at, remaining, 0.0f) * keep;
        store_some(b, buffer_new + at, remaining);
        d = nesterov ? d + b * momentum : b;
#endif
        store_some(skip ? old : old - d * rate, p_new + at, remaining);
    }
}
