// SPDX-License-Identifier: MIT
// The learning rate of a step.  Host side: lib/op/train/schedule.c, which has the formulas.
//
//   Work      one work-item
//   Memory    reads one number, writes one
//   Numerics  steps are exact up to 2^24; a rate has about 5 roundings

#include "common/vector.clh"

// kind: attncl_rate_schedule; falling: 1 / (n_steps - warmup).  For Noam's schedule, kind 1, `rate` is the rate times
// d_model^-1/2, and `warmup` is warmup^-3/2.
KERNEL void schedule_rate_fwd(__global const int *restrict taken, __global float *restrict result,
                              int kind, float rate, float warmup, float falling, float min_rate)
{
    const float t = (float)*taken + 1.0f;
    const float p = clamp((t - warmup) * falling, 0.0f, 1.0f);
    float now = rate;

    if (kind == 1)
        now = rate * fmin(1.0f / sqrt(t), t * warmup);
    else if (t <= warmup)
        now = rate * (t / warmup);
    else if (kind == 2)
        now = rate + (min_rate - rate) * p;
    else if (kind == 3)
        now = min_rate + (rate - min_rate) * (0.5f * (1.0f + cospi(p)));
    *result = now;
}
