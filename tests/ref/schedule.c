// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/optim.h"
#include "ref/ref.h"

double ref_schedule_rate(const struct ref_schedule *s, double t)
{
    const double p = t >= s->n_steps ? 1 : (t - s->warmup) / (s->n_steps - s->warmup);

    if (s->kind == ATTNCL_RATE_INVERSE_SQRT)
        return s->learning_rate * pow(s->d_model, -0.5) *
               fmin(pow(t, -0.5), t * pow(s->warmup, -1.5));
    if (t <= s->warmup)
        return s->learning_rate * t / s->warmup;
    if (s->kind == ATTNCL_RATE_LINEAR)
        return (1 - p) * s->learning_rate + p * s->min_rate;
    if (s->kind == ATTNCL_RATE_COSINE)
        return s->min_rate + (s->learning_rate - s->min_rate) * (1 + cos(acos(-1) * p)) / 2;
    return s->learning_rate;
}
