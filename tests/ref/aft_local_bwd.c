// SPDX-License-Identifier: MIT
//
// Gradients of sum y_i . g_i, per batch entry and channel, with z_i = sum_j p_ij v_j:
//
//   dq_i = g_i z_i s (1 - s), s = sigmoid(q_i);   a_i = g_i s
//   dv_j = sum_i a_i p_ij;   dk_j = sum_i a_i p_ij (v_j - z_i);   dw_ij = the same terms over
//   channels
//
// With `sizes` all terms are taken as positive: what a result's rounding errors are measured by.

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

static bool near(const struct ref_aft_data *x, int64_t i, int64_t j)
{
    return x->pos_bias && (i > j ? i - j : j - i) < x->window;
}

// p of one row and its logarithm; all 0 where nothing is seen.
static double weigh(const struct ref_aft_data *x, int64_t i, int64_t b, int64_t at, double *p)
{
    const int64_t steps = x->q->dim[0], row = x->q->dim[1] * x->q->dim[2];
    double max_exponent = -INFINITY, sum = 0;

    for (int64_t j = 0; j < steps; ++j) {
        const double w = near(x, i, j) ? x->pos_bias->data[i * x->pos_bias->dim[1] + j] : 0;
        p[j] = seen(x, i, j, b) ? w + x->k->data[j * row + at] : -INFINITY;
        max_exponent = fmax(max_exponent, p[j]);
    }
    for (int64_t j = 0; j < steps; ++j) {
        p[j] = max_exponent > -INFINITY ? exp(p[j] - max_exponent) : 0;
        sum += p[j];
    }
    for (int64_t j = 0; j < steps && sum > 0; ++j)
        p[j] /= sum;
    return sum > 0 ? max_exponent + log(sum) : 0;
}

static double size_or_not(double x, bool sizes)
{
    return sizes ? fabs(x) : x;
}

void ref_aft_local_bwd(const struct ref_aft_data *x, bool sizes, struct host *log_ret,
                       struct host *dq, struct host *dk, struct host *dv, struct host *dw)
{
    const int64_t steps = x->q->dim[0], channels = x->q->dim[2], row = x->q->dim[1] * channels;
    struct host *p = host_new(ATTNCL_F32, DIMS(steps)), *outs[] = {dq, dk, dv, dw};

    for (int n = 0; n < 4; ++n)
        for (int64_t i = 0; outs[n] && i < outs[n]->count; ++i)
            outs[n]->data[i] = 0;
    for (int64_t n = 0; n < steps * row; ++n) {
        const int64_t i = n / row, at = n % row;
        const double g = size_or_not(x->g->data[n], sizes), s = 1 / (1 + exp(-x->q->data[n]));
        double z = 0;
        log_ret->data[n] = weigh(x, i, at / channels, at, p->data);
        for (int64_t j = 0; j < steps; ++j)
            z += p->data[j] * size_or_not(x->v->data[j * row + at], sizes);
        dq->data[n] = g * z * s * (1 - s);
        for (int64_t j = 0; j < steps; ++j) {
            const double v = size_or_not(x->v->data[j * row + at], sizes), ap = g * s * p->data[j];
            const double term = ap * (sizes ? v + z : v - z);
            dv->data[j * row + at] += ap;
            dk->data[j * row + at] += term;
            if (dw && near(x, i, j))
                dw->data[i * dw->dim[1] + j] += term;
        }
    }
}
