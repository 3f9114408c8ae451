// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

struct problem {
    const struct host *q, *k, *v, *w, *mask;
    int causal;
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

// w[head, j - i + (s - 1) / 2] + k_j
static double exponent(const struct problem *p, int64_t i, int64_t j, int64_t b, int64_t head)
{
    const int64_t size = p->w->dim[1], place = j - i + (size - 1) / 2;
    const int64_t n_batch = p->k->dim[1], n_heads = p->k->dim[2];
    const double w = place >= 0 && place < size ? p->w->data[head * size + place] : 0;

    return w + p->k->data[(j * n_batch + b) * n_heads + head];
}

static void one(const struct problem *p, int64_t i, int64_t b, int64_t c, double *y, double *scale)
{
    const int64_t steps = p->q->dim[0], n_batch = p->q->dim[1], channels = p->q->dim[2];
    const int64_t head = c / (channels / p->k->dim[2]);
    double max_exponent = -INFINITY, sum = 0, weighted = 0, size = 0;

    for (int64_t j = 0; j < steps; ++j)
        if (seen(p, i, j, b))
            max_exponent = fmax(max_exponent, exponent(p, i, j, b, head));
    for (int64_t j = 0; j < steps && max_exponent > -INFINITY; ++j)
        if (seen(p, i, j, b)) {
            const double e = exp(exponent(p, i, j, b, head) - max_exponent);
            const double v = p->v->data[(j * n_batch + b) * channels + c];
            sum += e;
            weighted += e * v;
            size += e * fabs(v);
        }
    const double gate = 1 / (1 + exp(-p->q->data[(i * n_batch + b) * channels + c]));
    *y = sum > 0 ? gate * weighted / sum : 0;
    *scale = sum > 0 ? gate * size / sum : 0;
}

void ref_aft_conv_fwd(const struct host *q, const struct host *k, const struct host *v,
                      const struct host *w, const struct host *mask, int causal, struct host *y,
                      struct host *scale)
{
    const struct problem p = {q, k, v, w, mask, causal};
    int64_t at = 0;

    for (int64_t i = 0; i < q->dim[0]; ++i)
        for (int64_t b = 0; b < q->dim[1]; ++b)
            for (int64_t c = 0; c < q->dim[2]; ++c, ++at)
                one(&p, i, b, c, &y->data[at], &scale->data[at]);
}
