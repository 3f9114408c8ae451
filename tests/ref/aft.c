// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

static bool seen(const struct ref_aft_data *x, int64_t i, int64_t j, int64_t b)
{
    const struct host *m = x->mask;

    if (m) {
        const int64_t row = m->dim[0] == 1 ? 0 : i, entry = m->dim[2] == 1 ? 0 : b;
        return m->data[(row * m->dim[1] + j) * m->dim[2] + entry] != 0;
    }
    return !x->causal || j <= i;
}

int64_t ref_aft_key(const struct ref_aft_data *x, int64_t j, int64_t b, int64_t c)
{
    const int64_t per_key = x->per_head ? x->q->dim[2] / x->k->dim[2] : 1;

    return (j * x->k->dim[1] + b) * x->k->dim[2] + c / per_key;
}

int64_t ref_aft_bias(const struct ref_aft_data *x, int64_t i, int64_t j, int64_t c)
{
    const struct host *w = x->pos_bias;

    if (!x->per_head)
        return w && (i > j ? i - j : j - i) < x->window ? i * w->dim[1] + j : -1;
    const int64_t size = w->dim[1], place = j - i + (size - 1) / 2;
    const int64_t head = c / (x->q->dim[2] / x->k->dim[2]);
    return place >= 0 && place < size ? head * size + place : -1;
}

double ref_aft_weights(const struct ref_aft_data *x, int64_t i, int64_t b, int64_t c, double *p)
{
    const int64_t steps = x->q->dim[0];
    double max_exponent = -INFINITY, sum = 0;
    bool lost = false; // what is not finite may reach all weights

    for (int64_t j = 0; j < steps; ++j) {
        const int64_t at = ref_aft_bias(x, i, j, c);
        const double w = at >= 0 ? x->pos_bias->data[at] : 0;
        const double exponent = w + x->k->data[ref_aft_key(x, j, b, c)];
        p[j] = seen(x, i, j, b) ? exponent : -INFINITY;
        lost |= x->reaching && !isfinite(exponent);
        max_exponent = fmax(max_exponent, p[j]);
    }
    for (int64_t j = 0; j < steps; ++j) {
        p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - max_exponent);
        sum += p[j];
    }
    for (int64_t j = 0; j < steps && (sum != 0 || lost); ++j)
        p[j] = lost ? NAN : p[j] != 0 || x->reaching ? p[j] / sum : 0;
    return sum != 0 ? max_exponent + log(sum) : 0;
}

void ref_aft_fwd(const struct ref_aft_data *x, struct host *y, struct host *scale)
{
    const int64_t steps = x->q->dim[0], channels = x->q->dim[2], row = x->q->dim[1] * channels;
    struct host *p = host_new(ATTNCL_F32, DIMS(steps));

    for (int64_t n = 0; n < steps * row; ++n) {
        const double gate = 1 / (1 + exp(-x->q->data[n]));
        double sum = 0, size = 0;
        bool sees = false;
        ref_aft_weights(x, n / row, n % row / channels, n % channels, p->data);
        for (int64_t j = 0; j < steps; ++j) {
            if (p->data[j] == 0 && !x->reaching)
                continue;
            sees = true;
            sum += p->data[j] * x->v->data[j * row + n % row];
            size += p->data[j] * fabs(x->v->data[j * row + n % row]);
        }
        y->data[n] = sees ? gate * sum : 0;
        scale->data[n] = sees ? gate * size : 0;
    }
}

static struct ref_aft_data inputs(const struct host *q, const struct host *k, const struct host *v,
                                  const struct host *pos_bias, const struct host *mask, int causal)
{
    return (struct ref_aft_data){
        .q = (struct host *)q,
        .k = (struct host *)k,
        .v = (struct host *)v,
        .pos_bias = (struct host *)pos_bias,
        .mask = (struct host *)mask,
        .causal = causal,
    };
}

void ref_aft_local_fwd(const struct host *q, const struct host *k, const struct host *v,
                       const struct host *pos_bias, const struct host *mask, int window, int causal,
                       struct host *y, struct host *scale)
{
    struct ref_aft_data x = inputs(q, k, v, pos_bias, mask, causal);

    x.window = window;
    ref_aft_fwd(&x, y, scale);
}

void ref_aft_conv_fwd(const struct host *q, const struct host *k, const struct host *v,
                      const struct host *w, const struct host *mask, int causal, struct host *y,
                      struct host *scale)
{
    struct ref_aft_data x = inputs(q, k, v, w, mask, causal);

    x.per_head = true;
    ref_aft_fwd(&x, y, scale);
}
