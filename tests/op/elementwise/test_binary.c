// SPDX-License-Identifier: MIT
// Sums and products against their reference (tests/ref/binary.c).

#include "ref/ref.h"
#include "support/op_spec.h"

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
OP_SPEC(add_fwd, .in = "a f32 R*; b f32 R*", .out = "y f32 R*", .ref = sum, .grad = "a b",
        .ref_bwd = sum_bwd, .rel = 1.01, .grad_tolerance = 1e-7, .smoke = sizes,
        .special = "R=3x21", .data = SCALED | LIMITS);
OP_SPEC(mul_fwd, .in = "a f32 R*; b f32 R*", .out = "y f32 R*", .ref = product, .grad = "a b",
        .ref_bwd = product_bwd, .rel = 1.01, .tiny = 2e-38, .grad_tolerance = 1e-7, .smoke = sizes,
        .special = "R=3x21", .data = SCALED);
