// SPDX-License-Identifier: MIT
//
// The checks of attncl selftest: each op as a graph, and as its formula in double precision.

#include <math.h>

#include "selftest.h"

int64_t check_count(const struct check_array *a)
{
    int64_t count = 1;

    for (int i = 0; i < a->rank; i++)
        count *= a->dim[i];
    return count;
}

static int64_t last_axis(const struct check_array *a)
{
    return a->dim[a->rank - 1];
}

// -- rows

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

static attncl_value build_softmax(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_softmax(g, in[0], -1);
}

static void ref_softmax(const struct check *c, double *const *in, double *out)
{
    const int64_t n = last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i += n)
        check_softmax_row(in[0] + i, n, out + i);
}

static attncl_value build_masked(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_masked_softmax(g, in[0], in[1]);
}

static void ref_masked(const struct check *c, double *const *in, double *out)
{
    const int64_t rows = c->out.dim[1], n = c->out.dim[2];

    for (int64_t row = 0; row < c->out.dim[0] * rows; row++) {
        const int64_t length = (int64_t)in[1][row / rows];
        check_softmax_row(in[0] + row * n, length, out + row * n);
        for (int64_t i = length; i < n; i++)
            out[row * n + i] = 0;
    }
}

static attncl_value build_norm(attncl_graph *g, const struct check *c, const attncl_value *in)
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

static void ref_norm(const struct check *c, double *const *in, double *out)
{
    const int64_t n = last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i += n)
        check_norm_row(in[0] + i, in[1], in[2], n, out + i);
}

static attncl_value build_loss(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_cross_entropy(g, in[0], in[1], ATTNCL_REDUCE_NONE, -1);
}

static void ref_loss(const struct check *c, double *const *in, double *out)
{
    const int64_t n = last_axis(&c->in[0]);

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

static attncl_value build_argmax(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_argmax(g, in[0]);
}

static void ref_argmax(const struct check *c, double *const *in, double *out)
{
    const int64_t n = last_axis(&c->in[0]);

    for (int64_t row = 0; row < check_count(&c->out); row++) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (in[0][row * n + i] > in[0][row * n + best])
                best = i;
        out[row] = (double)best;
    }
}

// -- elements

static attncl_value build_activation(attncl_graph *g, const struct check *c, const attncl_value *in)
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

static void ref_activation(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = activate(in[0][i], c->kind);
}

static attncl_value build_sum(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_add(g, in[0], in[1]);
}

static void ref_sum(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i] + in[1][i];
}

static attncl_value build_product(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_mul(g, in[0], in[1]);
}

static void ref_product(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i] * in[1][i];
}

static attncl_value build_concat(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_concat(g, 2, in, 1);
}

static void ref_concat(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1], n_first = c->in[0].dim[1], n_second = n - n_first;

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const int64_t row = i / n, at = i % n;
        out[i] = at < n_first ? in[0][row * n_first + at] : in[1][row * n_second + at - n_first];
    }
}

static attncl_value build_transpose(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_value swapped = attncl_permute(g, in[0], (int[]){1, 0});

    return attncl_reshape(g, swapped, 1, c->out.dim);
}

static void ref_transpose(const struct check *c, double *const *in, double *out)
{
    const int64_t rows = c->in[0].dim[0], columns = c->in[0].dim[1];

    for (int64_t i = 0; i < rows * columns; i++)
        out[i] = in[0][i % rows * columns + i / rows];
}

static attncl_value build_embedding(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_embedding(g, in[1], in[0], 2);
}

static void ref_embedding(const struct check *c, double *const *in, double *out)
{
    const int64_t n = last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = 2 * in[0][(int64_t)in[1][i / n] * n + i % n];
}

#define F(low, high, ...)                                                                          \
    {                                                                                              \
        ATTNCL_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}, low, \
            high                                                                                   \
    }
#define I(high, ...)                                                                               \
    {                                                                                              \
        ATTNCL_I32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}, 1,   \
            high                                                                                   \
    }
#define OUT(...)  F(0, 0, __VA_ARGS__)
#define ROWS(...) F(-3, 3, __VA_ARGS__)

#define ACTIVATION(name, kind)                                                                     \
    {name, build_activation, ref_activation, true, kind, 0, OUT(1031), {ROWS(1031)}},              \
    {                                                                                              \
        name " of large values", build_activation, ref_activation, false, kind, 0, OUT(257),       \
        {                                                                                          \
            F(-200, 200, 257)                                                                      \
        }                                                                                          \
    }

// Widths on both sides of a vector, of a work-group and of what a GPU's registers hold.
const struct check selftest_checks[] = {
    {"softmax", build_softmax, ref_softmax, true, 0, 0, OUT(5, 37), {ROWS(5, 37)}},
    {"softmax of wide rows", build_softmax, ref_softmax, true, 0, 0, OUT(3, 1100), {ROWS(3, 1100)}},
    {"softmax of large values",
     build_softmax,
     ref_softmax,
     false,
     0,
     0,
     OUT(5, 70),
     {F(-9000, 9000, 5, 70)}},
    {"masked_softmax",
     build_masked,
     ref_masked,
     true,
     0,
     0,
     OUT(3, 4, 37),
     {ROWS(3, 4, 37), I(37, 3)}},
    {"layer_norm", build_norm, ref_norm, true, 0, 0, OUT(9, 70), {ROWS(9, 70), ROWS(70), ROWS(70)}},
    {"layer_norm of wide rows",
     build_norm,
     ref_norm,
     true,
     0,
     0,
     OUT(3, 1100),
     {ROWS(3, 1100), ROWS(1100), ROWS(1100)}},
    {"cross_entropy", build_loss, ref_loss, true, 0, 0, OUT(7), {ROWS(7, 70), I(70, 7)}},
    {"argmax", build_argmax, ref_argmax, false, 0, 0, {ATTNCL_I32, 1, {7}, 0, 0}, {ROWS(7, 70)}},
    ACTIVATION("gelu", ATTNCL_GELU),
    ACTIVATION("relu", ATTNCL_RELU),
    ACTIVATION("sigmoid", ATTNCL_SIGMOID),
    ACTIVATION("tanh", ATTNCL_TANH),
    ACTIVATION("silu", ATTNCL_SILU),
    ACTIVATION("gelu_tanh", ATTNCL_GELU_TANH),
    {"add", build_sum, ref_sum, true, 0, 0, OUT(1031), {ROWS(1031), ROWS(1031)}},
    {"mul", build_product, ref_product, true, 0, 0, OUT(1031), {ROWS(1031), ROWS(1031)}},
    {"concat", build_concat, ref_concat, true, 0, 0, OUT(5, 40), {ROWS(5, 19), ROWS(5, 21)}},
    {"copy of a transposed view",
     build_transpose,
     ref_transpose,
     true,
     0,
     0,
     OUT(37 * 19),
     {ROWS(37, 19)}},
    {"embedding", build_embedding, ref_embedding, true, 0, 0, OUT(9, 37), {ROWS(11, 37), I(11, 9)}},
    {"linear of one row",
     check_build_linear,
     check_ref_linear,
     true,
     0,
     0,
     OUT(1, 67),
     {ROWS(1, 65), ROWS(67, 65), ROWS(67)}},
    {"linear",
     check_build_linear,
     check_ref_linear,
     true,
     0,
     0,
     OUT(70, 67),
     {ROWS(70, 65), ROWS(67, 65), ROWS(67)}},
    {"bmm",
     check_build_bmm,
     check_ref_bmm,
     true,
     0,
     0,
     OUT(3, 19, 33),
     {ROWS(3, 19, 17), ROWS(3, 17, 33)}},
    {"attention",
     check_build_attention,
     check_ref_attention,
     true,
     0,
     0,
     OUT(1, 2, 11, 24),
     {ROWS(1, 2, 11, 24), ROWS(1, 2, 19, 24), ROWS(1, 2, 19, 24)}},
    {"causal attention",
     check_build_attention,
     check_ref_attention,
     true,
     0,
     1,
     OUT(1, 2, 11, 24),
     {ROWS(1, 2, 11, 24), ROWS(1, 2, 19, 24), ROWS(1, 2, 19, 24)}},
    {"aft_full",
     check_build_aft,
     check_ref_aft,
     true,
     ATTNCL_AFT_FULL,
     0,
     OUT(9, 2, 19),
     {ROWS(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 9)}},
    {"aft_local",
     check_build_aft,
     check_ref_aft,
     true,
     ATTNCL_AFT_LOCAL,
     1,
     OUT(19, 2, 19),
     {ROWS(19, 2, 19), ROWS(19, 2, 19), ROWS(19, 2, 19), ROWS(19, 19)}},
    {"aft_simple",
     check_build_mixing,
     check_ref_mixing,
     true,
     ATTNCL_AFT_SIMPLE,
     0,
     OUT(9, 2, 19),
     {ROWS(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 2, 19)}},
    {"aft_conv",
     check_build_mixing,
     check_ref_mixing,
     true,
     ATTNCL_AFT_CONV,
     0,
     OUT(9, 2, 20),
     {ROWS(9, 2, 20), ROWS(9, 2, 4), ROWS(9, 2, 20), ROWS(4, 5)}},
    {"additive_attention",
     check_build_additive,
     check_ref_additive,
     true,
     0,
     0,
     OUT(2, 5, 21),
     {ROWS(2, 5, 19), ROWS(2, 7, 19), ROWS(2, 7, 21), ROWS(19)}},
    {"gru",
     check_build_gru,
     check_ref_gru,
     true,
     0,
     0,
     OUT(4, 3, 17),
     {ROWS(4, 3, 9), F(-0.5, 0.5, 51, 9), ROWS(51), F(-0.5, 0.5, 51, 17), ROWS(51)}},
    {"spatial_gate",
     check_build_gating,
     check_ref_gating,
     true,
     0,
     0,
     OUT(11, 2, 19),
     {ROWS(11, 2, 38), ROWS(19), ROWS(19), ROWS(11, 11), ROWS(11)}},
    {"causal spatial_gate",
     check_build_gating,
     check_ref_gating,
     true,
     0,
     1,
     OUT(11, 2, 19),
     {ROWS(11, 2, 38), ROWS(19), ROWS(19), ROWS(11, 11), ROWS(11)}},
};
const size_t selftest_n_checks = sizeof selftest_checks / sizeof selftest_checks[0];
