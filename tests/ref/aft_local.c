// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

struct problem {
    const struct host *q, *k, *v, *pos_bias, *mask;
    int window, causal;
    int64_t steps, batch, channels;
};

static bool seen(const struct problem *p, int64_t i, int64_t j, int64_t b)
{
    const struct host *m = p->mask;

    if (m) {
        const int64_t row = m->dim[0] == 1 ? 0 : i, entry = m->dim[2] == 1 ? 0 : b;
        return m->data[(row * m->dim[1] + j) * m->dim[2] + entry] != 0;
    }
    return !p->causal || j <= i;
}

static double bias(const struct problem *p, int64_t i, int64_t j)
{
    const int64_t distance = i > j ? i - j : j - i;

    return p->pos_bias && distance < p->window ? p->pos_bias->data[i * p->pos_bias->dim[1] + j] : 0;
}

static void one(const struct problem *p, int64_t i, int64_t b, int64_t c, double *y, double *scale)
{
    const int64_t row = p->batch * p->channels, at = b * p->channels + c;
    double max_exponent = -INFINITY, sum = 0, weighted = 0, size = 0;

    for (int64_t j = 0; j < p->steps; ++j)
        if (seen(p, i, j, b))
            max_exponent = fmax(max_exponent, bias(p, i, j) + p->k->data[j * row + at]);
    for (int64_t j = 0; j < p->steps && max_exponent > -INFINITY; ++j)
        if (seen(p, i, j, b)) {
            const double e = exp(bias(p, i, j) + p->k->data[j * row + at] - max_exponent);
            sum += e;
            weighted += e * p->v->data[j * row + at];
            size += e * fabs(p->v->data[j * row + at]);
        }
    const double gate = 1 / (1 + exp(-p->q->data[i * row + at]));
    *y = sum > 0 ? gate * weighted / sum : 0;
    *scale = sum > 0 ? gate * size / sum : 0;
}

void ref_aft_local_fwd(const struct host *q, const struct host *k, const struct host *v,
                       const struct host *pos_bias, const struct host *mask, int window, int causal,
                       struct host *y, struct host *scale)
{
    const struct problem p = {q,      k,      v,         pos_bias,  mask,
                              window, causal, q->dim[0], q->dim[1], q->dim[2]};
    int64_t at = 0;

    for (int64_t i = 0; i < p.steps; ++i)
        for (int64_t b = 0; b < p.batch; ++b)
            for (int64_t c = 0; c < p.channels; ++c, ++at)
                one(&p, i, b, c, &y->data[at], &scale->data[at]);
}
