// SPDX-License-Identifier: MIT
//
// Gradients of sum y_i . g_i, per batch entry and channel, with z_i = sum_j p_ij v_j:
//
//   dq_i = g_i z_i s (1 - s), s = sigmoid(q_i);   a_i = g_i s
//   dv_j = sum_i a_i p_ij;   dk_j = sum_i a_i p_ij (v_j - z_i);   dw_ij = the same terms
//
// dk and dw are sums over the channels that share a key or a bias.  With `sizes` all terms are
// taken as positive: what a result's rounding errors are measured by.

#include <math.h>

#include "ref/ref.h"

static double size_or_not(double x, bool sizes)
{
    return sizes ? fabs(x) : x;
}

void ref_aft_bwd(const struct ref_aft_data *x, bool sizes, struct host *log_ret, struct host *dq,
                 struct host *dk, struct host *dv, struct host *dw)
{
    const int64_t steps = x->q->dim[0], channels = x->q->dim[2], row = x->q->dim[1] * channels;
    struct host *p = host_new(ATTNCL_F32, DIMS(steps)), *outs[] = {dq, dk, dv, dw};

    for (int n = 0; n < 4; ++n)
        for (int64_t i = 0; outs[n] && i < outs[n]->count; ++i)
            outs[n]->data[i] = 0;
    for (int64_t n = 0; n < steps * row; ++n) {
        const int64_t i = n / row, at = n % row, b = at / channels, c = at % channels;
        const double g = size_or_not(x->g->data[n], sizes), s = 1 / (1 + exp(-x->q->data[n]));
        double z = 0;
        log_ret->data[n] = ref_aft_weights(x, i, b, c, p->data);
        for (int64_t j = 0; j < steps; ++j)
            if (p->data[j] != 0 || x->reaching)
                z += p->data[j] * size_or_not(x->v->data[j * row + at], sizes);
        dq->data[n] = g * z * s * (1 - s);
        for (int64_t j = 0; j < steps; ++j) {
            if (p->data[j] == 0 && !x->reaching)
                continue;
            const double v = size_or_not(x->v->data[j * row + at], sizes), ap = g * s * p->data[j];
            const double term = ap * (sizes ? v + z : v - z);
            const int64_t bias = dw ? ref_aft_bias(x, i, j, c) : -1;
            dv->data[j * row + at] += ap;
            dk->data[ref_aft_key(x, j, b, c)] += term;
            if (bias >= 0)
                dw->data[bias] += term;
        }
    }
}
