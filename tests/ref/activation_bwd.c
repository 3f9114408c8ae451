// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

double ref_slope(double x, int kind)
{
    const double s = 1 / (1 + exp(-x)), t = 1 / (1 + exp(x)); // t = 1 - s

    if (isinf(x) && (kind == ATTNCL_GELU || kind == ATTNCL_SILU || kind == ATTNCL_GELU_TANH))
        return x > 0; // the limit
    switch (kind) {
    case ATTNCL_GELU:
        return 0.5 * erfc(-x / sqrt(2)) + x * exp(-0.5 * x * x) / sqrt(2 * acos(-1));
    case ATTNCL_RELU:
        return x > 0;
    case ATTNCL_SIGMOID:
        return s * t;
    case ATTNCL_TANH:
        return 1 / (cosh(x) * cosh(x));
    case ATTNCL_SILU:
        return s + x * s * t;
    case ATTNCL_GELU_TANH: {
        const double c = 2 * sqrt(2 / acos(-1)), z = c * (x + 0.044715 * x * x * x);
        return 1 / (1 + exp(-z)) +
               x * c * (1 + 3 * 0.044715 * x * x) / ((1 + exp(-z)) * (1 + exp(z)));
    }
    default:
        return 1;
    }
}

// Where ReLU's argument is not above 0, dy has no effect; an argument that is NaN counts as above.
static double through(double x, double dy, int kind)
{
    if (kind == ATTNCL_RELU)
        return x <= 0 ? 0 : dy;
    return dy * ref_slope(x, kind);
}

void ref_activation_bwd(const struct host *x, const struct host *dy, int kind, struct host *dx)
{
    for (int64_t i = 0; i < x->count; ++i)
        dx->data[i] = through(x->data[i], dy->data[i], kind);
}

// y = f(p) gate + r; gate NULL: 1, and no dgate
void ref_linear_bwd_epilogue(const struct host *p, const struct host *dy, const struct host *gate,
                             int kind, struct host *dp, struct host *dgate)
{
    for (int64_t i = 0; i < p->count; ++i) {
        const double g = gate ? gate->data[i] : 1;
        dp->data[i] = through(p->data[i], dy->data[i] * g, kind);
        if (gate)
            dgate->data[i] = dy->data[i] * ref_activate(p->data[i], kind);
    }
}

// -- the op

static int kind_of(const void *params)
{
    return ((const struct linear_bwd_epilogue_params *)params)->activation;
}

static void epilogue(const void *params, struct host *const *in, struct host *const *out)
{
    ref_linear_bwd_epilogue(in[0], in[1], in[2], kind_of(params), out[0], out[1]);
}

// Factors of a few ulp each (cl/common/math.clh); near a zero of the slope, GELU's and SiLU's are differences of terms
// below 1.2.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    for (int64_t i = 0; i < want->count; ++i) {
        const double gate = k == 0 && spec_in(p, 2) ? spec_in(p, 2)->data[i] : 1;
        allowed->data[i] = 4e-6 * fabs(want->data[i]) + 4e-7 * fabs(spec_in(p, 1)->data[i] * gate);
    }
}

#define KIND(kind)                                                                                 \
    {#kind, SPEC_PARAMS(linear_bwd_epilogue, ATTNCL_##kind)},                                      \
    {                                                                                              \
#kind " gated", SPEC_PARAMS(linear_bwd_epilogue, ATTNCL_##kind),                           \
            "gate f32 R*; dgate f32 R*"                                                            \
    }
OP_SPEC(linear_bwd_epilogue, .in = "argument f32 R*; dy f32 R*; gate? f32 R*",
        .out = "dp f32 R*; dgate? f32 R*", .ref = epilogue, .allow = allow,
        .smoke = "R=1,7x33,1031", .special = "R=3x21",
        .cases = {KIND(IDENTITY), KIND(GELU), KIND(RELU), KIND(SIGMOID), KIND(TANH), KIND(SILU),
                  KIND(GELU_TANH)});
