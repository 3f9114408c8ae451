// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_rotate_fwd(const struct host *x, const struct host *table, struct host *y)
{
    const int64_t width = table->dim[1];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t c = i % width;
        y->data[i] = table->data[c] * x->data[i] + table->data[width + c] * x->data[i ^ 1];
    }
}

// -- the op

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
        .smoke = "R=-,3x5,7 C=2,6,16,38", .gpu = "R=8 C=512", .full = "R=7 C=514",
        .special = "R=3 C=22",
        .refusals = {
            {ATTNCL_ERR_SHAPE, "x is [3, 5], its last axis must be even", .sizes = "R=3 C=5"},
            {ATTNCL_ERR_SHAPE, "x is [], must be [..., C]", .with = "x f32"}});

// By positions, as users call it.
static void shift(const void *params, struct host *const *in, struct host *const *out)
{
    const int64_t width = in[0]->dim[in[0]->rank - 1];
    struct host *table = host_new(ATTNCL_F32, DIMS(2, width));

    for (int64_t c = 0; c < width; ++c) {
        const double angle =
            *(const double *)params * pow(10000, -(double)(c / 2 * 2) / (double)width);
        table->data[c] = cos(angle);
        table->data[width + c] = c % 2 ? -sin(angle) : sin(angle);
    }
    ref_rotate_fwd(in[0], table, out[0]);
}

SPEC_BUILD(build, attncl_relative_shift(g, in[0], *(const double *)params))

OP_SPEC(relative_shift, .in = "x f32 R* C", .out = "y f32 R* C", .ref = shift, .build = build,
        .grad = "x", .rel = 3, .abs = 3, .smoke = "R=-,3x5 C=2,38",
        .cases = {{"ahead", &(const double){3}}, {"back", &(const double){-2}}});
