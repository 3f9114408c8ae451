// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: softmax, norms, losses and other ops on rows.

#include <math.h>

#include "selftest.h"

// exp(x - max) / sum over the first n of a row; the rest is 0.
void check_softmax_row(const double *x, int64_t n, double *y)
{
    double most = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++)
        y[i] /= sum;
}

attncl_value check_build_softmax(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_softmax(g, in[0], -1);
}

void check_ref_softmax(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i += n)
        check_softmax_row(in[0] + i, n, out + i);
}

attncl_value check_build_masked(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_masked_softmax(g, in[0], in[1]);
}

void check_ref_masked(const struct check *c, double *const *in, double *out)
{
    const int64_t rows = c->out.dim[1], n = c->out.dim[2];

    for (int64_t row = 0; row < c->out.dim[0] * rows; row++) {
        const int64_t length = (int64_t)in[1][row / rows];
        check_softmax_row(in[0] + row * n, length, out + row * n);
        for (int64_t i = length; i < n; i++)
            out[row * n + i] = 0;
    }
}

attncl_value check_build_norm(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_layer_norm(g, in[0], in[1], in[2], 1e-5f);
}

void check_norm_row(const double *x, const double *weight, const double *bias, int64_t n, double *y)
{
    double mean = 0, variance = 0;

    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + 1e-5f) * weight[i] + bias[i];
}

void check_ref_norm(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i += n)
        check_norm_row(in[0] + i, in[1], in[2], n, out + i);
}

attncl_value check_build_loss(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_cross_entropy(g, in[0], in[1], ATTNCL_REDUCE_NONE, -1);
}

void check_ref_loss(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->in[0]);

    for (int64_t row = 0; row < check_count(&c->out); row++) {
        const double *x = in[0] + row * n;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            most = fmax(most, x[i]);
        for (int64_t i = 0; i < n; i++)
            sum += exp(x[i] - most);
        out[row] = most + log(sum) - x[(int64_t)in[1][row]];
    }
}

attncl_value check_build_argmax(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_argmax(g, in[0]);
}

void check_ref_argmax(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->in[0]);

    for (int64_t row = 0; row < check_count(&c->out); row++) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (in[0][row * n + i] > in[0][row * n + best])
                best = i;
        out[row] = (double)best;
    }
}
