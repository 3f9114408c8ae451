// SPDX-License-Identifier: MIT
// Split-K reduction: the sum of partial results and what is added to it.
// Reference: that sum, in double, below.

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

enum { PARTIALS, BIAS, RESIDUAL };

static void reduce_of(struct host *const *in, bool sizes, struct host *y)
{
    const int64_t width = in[PARTIALS]->dim[2];

    for (int64_t i = 0; i < y->count; ++i) {
        const double bias = in[BIAS] ? in[BIAS]->data[i % width] : 0, rest = in[RESIDUAL]->data[i];
        y->data[i] = sizes ? fabs(rest) + fabs(bias) : rest + bias;
        for (int64_t s = 0; s < in[PARTIALS]->dim[0]; ++s) {
            const double partial = in[PARTIALS]->data[s * y->count + i];
            y->data[i] += sizes ? fabs(partial) : partial;
        }
    }
}

static void reduce(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    reduce_of(in, false, out[0]);
}

// Rounded additions of the parts, the bias and the residual.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct host *const in[] = {spec_in(p, 0), spec_in(p, 1), spec_in(p, 2)};

    (void)k, (void)want;
    reduce_of((struct host *const *)in, true, allowed);
    host_scale(allowed, (spec_extent(p, 'S') + 1) * 0x1p-24);
}

OP_SPEC(split_k_reduce_fwd, .in = "partials f32 S M D; bias? f32 D; residual f32 M D",
        .out = "y f32 M D", .ref = reduce, .allow = allow,
        .smoke = "S=1 M=2 D=1; S=3 M=5 D=16; S=4 M=2 D=70", .gpu = "S=8 M=16 D=512",
        .special = "S=3 M=3 D=21", .full = "S=16 M=1 D=70; S=4 M=2 D=48", .data = SCALED,
        .cases = {{"plain"}, {"biased", .with = "bias f32 D"}});
