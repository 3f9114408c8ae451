// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: ops on elements, and those that move them.

#include <math.h>

#include "selftest.h"

attncl_value check_build_activation(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    return attncl_activate(g, in[0], (attncl_activation)c->kind);
}

static double activate(double x, int kind)
{
    switch (kind) {
    case ATTNCL_GELU:
        return 0.5 * x * erfc(-x / sqrt(2));
    case ATTNCL_RELU:
        return x > 0 ? x : 0;
    case ATTNCL_SIGMOID:
        return 1 / (1 + exp(-x));
    case ATTNCL_TANH:
        return tanh(x);
    case ATTNCL_SILU:
        return x / (1 + exp(-x));
    default: // GELU by tanh
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
}

void check_ref_activation(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = activate(in[0][i], c->kind);
}

attncl_value check_build_biased(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    return attncl_bias_activate(g, in[0], in[1], (attncl_activation)c->kind);
}

void check_ref_biased(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = activate(in[0][i] + in[1][i % n], c->kind);
}

attncl_value check_build_sum(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_add(g, in[0], in[1]);
}

void check_ref_sum(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i] + in[1][i];
}

attncl_value check_build_product(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_mul(g, in[0], in[1]);
}

void check_ref_product(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i] * in[1][i];
}

attncl_value check_build_concat(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_concat(g, 2, in, 1);
}

void check_ref_concat(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1], n_first = c->in[0].dim[1], n_second = n - n_first;

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const int64_t row = i / n, at = i % n;
        out[i] = at < n_first ? in[0][row * n_first + at] : in[1][row * n_second + at - n_first];
    }
}

attncl_value check_build_transpose(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_value swapped = attncl_permute(g, in[0], (int[]){1, 0});

    return attncl_reshape(g, swapped, 1, c->out.dim);
}

void check_ref_transpose(const struct check *c, double *const *in, double *out)
{
    const int64_t rows = c->in[0].dim[0], columns = c->in[0].dim[1];

    for (int64_t i = 0; i < rows * columns; i++)
        out[i] = in[0][i % rows * columns + i / rows];
}

enum { SLICE_START = 4 };

attncl_value check_build_slice(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    return attncl_slice(g, in[0], 1, SLICE_START, SLICE_START + c->out.dim[1]);
}

void check_ref_slice(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1] * c->out.dim[2], n_in = c->in[0].dim[1] * c->in[0].dim[2];

    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i / n * n_in + SLICE_START * c->out.dim[2] + i % n];
}

static const double shift = 3;

attncl_value check_build_rotation(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_relative_shift(g, in[0], shift);
}

void check_ref_rotation(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i += 2) {
        const double angle = shift * pow(10000, -(double)(i % n) / (double)n);
        out[i] = cos(angle) * in[0][i] + sin(angle) * in[0][i + 1];
        out[i + 1] = cos(angle) * in[0][i + 1] - sin(angle) * in[0][i];
    }
}

attncl_value check_build_embedding(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_embedding(g, in[1], in[0], 2);
}

void check_ref_embedding(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = 2 * in[0][(int64_t)in[1][i / n] * n + i % n];
}
