// SPDX-License-Identifier: MIT
//
//   linear   y = act(x W^T + b) gate + residual, what its gradients are differences of
//   dx = d W, dW = d^T x, db = sum of the rows of d

#include "ref/ref.h"

// bias, gate, residual: NULL where absent
void ref_linear_fwd(struct host *const *in, int activation, struct host *y)
{
    const struct host *x = in[0], *weight = in[1], *bias = in[2], *gate = in[3], *residual = in[4];
    const int64_t n_in = weight->dim[1], n_out = weight->dim[0];

    for (int64_t i = 0; i < y->count; ++i) {
        const double *row = x->data + i / n_out * n_in, *w = weight->data + i % n_out * n_in;
        double sum = bias ? bias->data[i % n_out] : 0;
        for (int64_t c = 0; c < n_in; ++c)
            sum += row[c] * w[c];
        y->data[i] = ref_activate(sum, activation) * (gate ? gate->data[i] : 1) +
                     (residual ? residual->data[i] : 0);
    }
}

void ref_bmm_fwd(const struct host *a, const struct host *b, struct host *y)
{
    const int64_t n = a->dim[1], m = a->dim[2], p = b->dim[2];

    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t entry = i / (n * p), row = i / p % n, column = i % p;
        y->data[i] = 0;
        for (int64_t k = 0; k < m; ++k)
            y->data[i] +=
                a->data[(entry * n + row) * m + k] * b->data[(entry * m + k) * p + column];
    }
}

// Every output is [.., out], every x [.., in] of as many rows.
void ref_linear_bwd_input(const struct host *d, const struct host *weight, struct host *dx)
{
    const int64_t n_in = weight->dim[1], n_out = weight->dim[0];

    for (int64_t i = 0; i < dx->count; ++i) {
        dx->data[i] = 0;
        for (int64_t o = 0; o < n_out; ++o)
            dx->data[i] += d->data[i / n_in * n_out + o] * weight->data[o * n_in + i % n_in];
    }
}

void ref_linear_bwd_weight(const struct host *d, const struct host *x, struct host *dw)
{
    const int64_t n_in = dw->dim[1], n_out = dw->dim[0];

    for (int64_t i = 0; i < dw->count; ++i) {
        dw->data[i] = 0;
        for (int64_t r = 0; r < d->count / n_out; ++r)
            dw->data[i] += d->data[r * n_out + i / n_in] * x->data[r * n_in + i % n_in];
    }
}

void ref_linear_bwd_bias(const struct host *d, struct host *db)
{
    for (int64_t i = 0; i < db->count; ++i)
        db->data[i] = 0;
    for (int64_t i = 0; i < d->count; ++i)
        db->data[i % db->count] += d->data[i];
}
