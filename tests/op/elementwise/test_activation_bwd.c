// SPDX-License-Identifier: MIT
// The gradients of activations against their reference (tests/ref/activation_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static int kind_of(const void *params)
{
    return ((const struct activation_bwd_params *)params)->kind;
}

static void gradient(const void *params, struct host *const *in, struct host *const *out)
{
    ref_activation_bwd(in[0], in[1], kind_of(params), out[0]);
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

#define KINDS(type)                                                                                \
    {"identity", SPEC_PARAMS(type, ATTNCL_IDENTITY)}, {"GELU", SPEC_PARAMS(type, ATTNCL_GELU)},    \
        {"ReLU", SPEC_PARAMS(type, ATTNCL_RELU)}, {"sigmoid", SPEC_PARAMS(type, ATTNCL_SIGMOID)},  \
        {"tanh", SPEC_PARAMS(type, ATTNCL_TANH)}, {"SiLU", SPEC_PARAMS(type, ATTNCL_SILU)},        \
    {                                                                                              \
        "GELU by tanh", SPEC_PARAMS(type, ATTNCL_GELU_TANH)                                        \
    }
OP_SPEC(activation_bwd, .in = "argument f32 R*; dy f32 R*", .out = "dx f32 R*", .ref = gradient,
        .allow = allow, .smoke = "R=-,1,3x5x7,5003", .special = "R=3x21",
        .data = LIMITS | ALIKE | TAILS | NEAR_ZERO, .cases = {KINDS(activation_bwd)},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "no activation 17", SPEC_PARAMS(activation_bwd, 17)}});

#define GATED(kind)                                                                                \
    {                                                                                              \
#kind " gated", SPEC_PARAMS(linear_bwd_epilogue, ATTNCL_##kind),                           \
            "gate f32 R*; dgate f32 R*"                                                            \
    }
OP_SPEC(linear_bwd_epilogue, .in = "argument f32 R*; dy f32 R*; gate? f32 R*",
        .out = "dp f32 R*; dgate? f32 R*", .ref = epilogue, .allow = allow,
        .smoke = "R=1,7x33,1031", .special = "R=3x21",
        .cases = {KINDS(linear_bwd_epilogue), GATED(IDENTITY), GATED(GELU), GATED(RELU),
                  GATED(SIGMOID), GATED(TANH), GATED(SILU), GATED(GELU_TANH)});
