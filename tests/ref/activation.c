// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// Where the formula has infinity times 0, the limit.
static bool has_limit(double x, int kind)
{
    return isinf(x) && (kind == ATTNCL_GELU || kind == ATTNCL_SILU || kind == ATTNCL_GELU_TANH);
}

double ref_activate(double x, int kind)
{
    if (has_limit(x, kind))
        return fmax(x, 0);
    switch (kind) {
    case ATTNCL_GELU:
        return 0.5 * x * erfc(-x / sqrt(2));
    case ATTNCL_RELU:
        return x < 0 ? 0 : x;
    case ATTNCL_SIGMOID:
        return 1 / (1 + exp(-x));
    case ATTNCL_TANH:
        return tanh(x);
    case ATTNCL_SILU:
        return x / (1 + exp(-x));
    case ATTNCL_GELU_TANH:
        return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

void ref_activation_fwd(const struct host *x, int kind, struct host *y)
{
    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = ref_activate(x->data[i], kind);
}

// -- the op

static int kind_of(const void *params)
{
    return ((const struct activation_fwd_params *)params)->kind;
}

static void activation(const void *params, struct host *const *in, struct host *const *out)
{
    ref_activation_fwd(in[0], kind_of(params), out[0]);
}

static void activation_bwd(const void *params, struct host *const *in, struct host *const *dy,
                           struct host *const *dx)
{
    ref_activation_bwd(in[0], dy[0], kind_of(params), dx[0]);
}

// The worst errors that cl/common/math.clh states, in ulp, with a margin for devices whose division is good to 2.5 ulp, and
// what a device may flush to zero.  The relative error of GELU by tanh grows with the exponent of its tail, up to 87.
static double allowed_at(int kind, double x, double y)
{
    const double ulp = 1.2e-7, tiny = 2e-38;

    switch (kind) {
    case ATTNCL_IDENTITY:
    case ATTNCL_RELU:
        return 0;
    case ATTNCL_GELU:
        return 11 * ulp * fabs(y) + 3 * tiny;
    case ATTNCL_GELU_TANH:
        return (x < -3 ? 2e-5 : 16 * ulp) * fabs(y) + 10 * tiny;
    default:
        return 6 * ulp * fabs(y) + tiny;
    }
}

static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] =
            allowed_at(kind_of(spec_params(p)), spec_in(p, 0)->data[i], want->data[i]);
}

// Factors of a few ulp each; near a zero of the slope, GELU's and SiLU's are differences of terms below 1.2.
static void allow_grad(const struct spec_point *p, int k, const struct host *want,
                       struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 4e-6 * fabs(want->data[i]) + 4e-7 * fabs(spec_dy(p, 0)->data[i]);
}

// ReLU's arguments are kept from its corner, across which a difference is no slope.
static void keep_off_corner(struct host *const *in)
{
    for (int64_t i = 0; i < in[0]->count; ++i)
        if (fabs(in[0]->data[i]) < 1e-3)
            in[0]->data[i] = in[0]->data[i] < 0 ? -0.125 : 0.125;
}

#define KINDS(type)                                                                                \
    {"identity", SPEC_PARAMS(type, ATTNCL_IDENTITY), .gpu = ""},                                   \
        {"GELU", SPEC_PARAMS(type, ATTNCL_GELU)},                                                  \
        {"ReLU", SPEC_PARAMS(type, ATTNCL_RELU), .prepare = keep_off_corner},                      \
        {"sigmoid", SPEC_PARAMS(type, ATTNCL_SIGMOID)}, {"tanh", SPEC_PARAMS(type, ATTNCL_TANH)},  \
        {"SiLU", SPEC_PARAMS(type, ATTNCL_SILU)},                                                  \
    {                                                                                              \
        "GELU by tanh", SPEC_PARAMS(type, ATTNCL_GELU_TANH)                                        \
    }
SPEC_BUILD(build, attncl_activate(g, in[0], (attncl_activation)kind_of(params)))

OP_SPEC(activation_fwd, .in = "x f32 R*", .out = "y f32 R*", .ref = activation, .build = build,
        .grad = "x", .ref_bwd = activation_bwd, .allow = allow, .allow_grad = allow_grad,
        .grad_data = TAILS | LIMITS, .smoke = "R=-,1,3x5x7,4x19,5003", .gpu = "R=1048576",
        .special = "R=3x21", .data = SCALED | PEAK | LIMITS | ALIKE | TAILS | NEAR_ZERO,
        .cases = {KINDS(activation_fwd)},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "no activation 7", SPEC_PARAMS(activation_fwd, 7)}});

static void add_bias(struct host *const *in, struct host *sum)
{
    for (int64_t i = 0; i < sum->count; ++i)
        sum->data[i] = in[0]->data[i] + in[1]->data[i % in[1]->count];
}

static void of_sum(const void *params, struct host *const *in, struct host *const *out)
{
    add_bias(in, out[0]);
    ref_activation_fwd(out[0], kind_of(params), out[0]);
}

static void of_sum_bwd(const void *params, struct host *const *in, struct host *const *dy,
                       struct host *const *dx)
{
    add_bias(in, dx[0]);
    ref_activation_bwd(dx[0], dy[0], kind_of(params), dx[0]);
    ref_linear_bwd_bias(dx[0], dx[1]);
}

// The sum is rounded once, the activation has its own error.
static void allow_of_sum(const struct spec_point *p, int k, const struct host *want,
                         struct host *allowed)
{
    const struct host *const x = spec_in(p, 0), *const bias = spec_in(p, 1);
    const int kind = kind_of(spec_params(p));

    (void)k;
    for (int64_t i = 0; i < want->count; ++i) {
        const double sum = x->data[i] + bias->data[i % bias->count];
        allowed->data[i] =
            allowed_at(kind, sum, want->data[i]) + 6e-8 * fabs(sum * ref_slope(sum, kind));
    }
}

static void keep_sum_off_corner(struct host *const *in)
{
    for (int64_t i = 0; i < in[0]->count; ++i)
        if (fabs(in[0]->data[i] + in[1]->data[i % in[1]->count]) < 1e-3)
            in[0]->data[i] += 0.125;
}

SPEC_BUILD(build_biased, attncl_bias_activate(g, in[0], in[1], (attncl_activation)kind_of(params)))

OP_SPEC(
    bias_activation_fwd, .in = "x f32 R* C; bias f32 C", .out = "y f32 R* C", .ref = of_sum,
    .build = build_biased, .grad = "x bias", .ref_bwd = of_sum_bwd, .allow = allow_of_sum,
    .grad_tolerance = 2e-6, .smoke = "R=- C=7; R=3x2 C=1,19,64", .gpu = "R=4096 C=1024",
    .full = "R=3x2 C=100; R=70 C=1024", .special = "R=3 C=21", .data = PEAK,
    .cases = {{"identity", SPEC_PARAMS(bias_activation_fwd, ATTNCL_IDENTITY)},
              {"GELU", SPEC_PARAMS(bias_activation_fwd, ATTNCL_GELU), .gpu = "R=4096 C=63,1024"},
              {"ReLU", SPEC_PARAMS(bias_activation_fwd, ATTNCL_RELU),
               .prepare = keep_sum_off_corner},
              {"sigmoid", SPEC_PARAMS(bias_activation_fwd, ATTNCL_SIGMOID)},
              {"tanh", SPEC_PARAMS(bias_activation_fwd, ATTNCL_TANH)},
              {"SiLU", SPEC_PARAMS(bias_activation_fwd, ATTNCL_SILU)},
              {"GELU by tanh", SPEC_PARAMS(bias_activation_fwd, ATTNCL_GELU_TANH)}},
    .refusals = {{ATTNCL_ERR_ARGUMENT, "no activation -1", SPEC_PARAMS(bias_activation_fwd, -1)}});
