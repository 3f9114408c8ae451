// SPDX-License-Identifier: MIT
// Rotated pairs against their reference (tests/ref/rotate.c).

#include "ref/ref.h"
#include "support/op_spec.h"

static void rotate(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_rotate_fwd(in[0], in[1], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    const int64_t width = in[1]->dim[1];
    const double *const table = in[1]->data, *const d = dy[0]->data;

    (void)params;
    for (int64_t i = 0; i < dx[0]->count; ++i)
        dx[0]->data[i] = table[i % width] * d[i] + table[width + (i % width ^ 1)] * d[i ^ 1];
}

// Three roundings of values of the size of the two products.  A pair, less than a vector, one, a ragged tail, several
// work-groups.
OP_SPEC(rotate_fwd, .in = "x f32 R* C; table f32 2 C", .out = "y f32 R* C", .ref = rotate,
        .grad = "x", .ref_bwd = gradient, .grad_tolerance = 3e-7, .rel = 3, .abs = 2,
        .smoke = "R=-,3x5,7 C=2,6,16,38", .full = "R=7 C=514", .special = "R=3 C=22",
        .refusals = {
            {ATTNCL_ERR_SHAPE, "x is [3, 5], its last axis must be even", .sizes = "R=3 C=5"},
            {ATTNCL_ERR_SHAPE, "x is a scalar", .with = "x f32"}});
