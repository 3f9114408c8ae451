// SPDX-License-Identifier: MIT

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_add_fwd(const struct host *a, const struct host *b, struct host *y)
{
    for (int64_t i = 0; i < a->count; ++i)
        y->data[i] = a->data[i] + b->data[i];
}

void ref_mul_fwd(const struct host *a, const struct host *b, struct host *y)
{
    for (int64_t i = 0; i < a->count; ++i)
        y->data[i] = a->data[i] * b->data[i];
}

// -- the op

static void sum(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_add_fwd(in[0], in[1], out[0]);
}

static void sum_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    (void)params;
    (void)in;
    host_set(dx[0], dy[0]->data);
    host_set(dx[1], dy[0]->data);
}

static void product(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_mul_fwd(in[0], in[1], out[0]);
}

static void product_bwd(const void *params, struct host *const *in, struct host *const *dy,
                        struct host *const *dx)
{
    (void)params;
    ref_mul_fwd(in[1], dy[0], dx[0]);
    ref_mul_fwd(in[0], dy[0], dx[1]);
}

// One rounding.
static const char sizes[] = "R=-,3x5,4x6,2x1031";
SPEC_BUILD(build_add, attncl_add(g, in[0], in[1]))

OP_SPEC(add_fwd, .in = "a f32 R*; b f32 R*", .out = "y f32 R*", .ref = sum, .build = build_add,
        .grad = "a b", .ref_bwd = sum_bwd, .rel = 1.01, .grad_tolerance = 1e-7, .smoke = sizes,
        .gpu = "R=1048576", .special = "R=3x21", .data = SCALED | LIMITS);
SPEC_BUILD(build_mul, attncl_mul(g, in[0], in[1]))

OP_SPEC(mul_fwd, .in = "a f32 R*; b f32 R*", .out = "y f32 R*", .ref = product, .build = build_mul,
        .grad = "a b", .ref_bwd = product_bwd, .rel = 1.01, .tiny = 2e-38, .grad_tolerance = 1e-7,
        .smoke = sizes, .gpu = "R=1048576", .special = "R=3x21", .data = SCALED);
