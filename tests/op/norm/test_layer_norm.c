// SPDX-License-Identifier: MIT
// Layer normalisation against its reference (tests/ref/layer_norm.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

static const struct layer_norm_fwd_params params = {1e-5f};

static void norm(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_fwd(in[0], in[1], in[2], (double)params.eps, out[0]);
}

static void gradients(const void *p, struct host *const *in, struct host *const *dy,
                      struct host *const *dx)
{
    (void)p;
    ref_layer_norm_bwd(in[0], in[1], dy[0], (double)params.eps, dx[0], dx[1], dx[2]);
}

// In units of the weight: the sums behind mean and variance, 4 log2(n) roundings, and each element's own.  The ratio of
// mean and spread does not enter: the mean is corrected (cl/norm/layer_norm.cl).
static double relative(double width)
{
    return (8 + width / 256) * 6e-8;
}

static double absolute(double width, const struct host *weight, const struct host *bias)
{
    return 6e-8 * (4 * log2(width + 1) * host_largest(weight) + 2 * host_largest(bias));
}

static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double width = spec_extent(p, 'C'), base = absolute(width, spec_in(p, 1), spec_in(p, 2));

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = relative(width) * fabs(want->data[i]) + base;
}

OP_SPEC(layer_norm_fwd, .in = "x f32 R* C*; weight f32 C*; bias f32 C*", .out = "y f32 R* C*",
        .ref = norm, .grad = "x weight bias", .ref_bwd = gradients, .grad_tolerance = 4e-6,
        .allow = allow, .smoke = "R=1,5 C=1,7,16; R=70 C=19; R=2x5 C=3x7; R=- C=2x5x3; R=3 C=257",
        .special = "R=3 C=21",
        .full = "R=4 C=256; R=9 C=32; R=3 C=1024,1025,4100; R=2 C=8196,8209; R=300 C=33; R=37 C=64",
        .data = OFFSET | SCALED | PEAK | ALIKE | RISING, .leeway = MEETS,
        .cases = {{.params = &params}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "eps is -1", SPEC_PARAMS(layer_norm_fwd, -1.0f)}});

// Rows that a GPU does not hold have their spread measured around the mean of their first columns.
TEST(first_columns_unlike_the_rest)
{
    enum { WIDTH = 8196 };
    struct host *x = host_random(16, DIMS(4, WIDTH));

    for (int c = 0; c < WIDTH; ++c) {
        x->data[c] = (float)(x->data[c] + (c < 4096 ? 1e4 : -1e4));
        x->data[WIDTH + c] = (float)(x->data[WIDTH + c] + 1e4 + c);
        x->data[2 * WIDTH + c] = c == 0 ? 1e3 : (float)(x->data[2 * WIDTH + c] + 100);
        x->data[3 * WIDTH + c] = -7.25;
    }
    struct host *const in[] = {x, host_random(11, DIMS(WIDTH)), host_random(12, DIMS(WIDTH))};
    struct host *want = host_like(x);
    norm(&params, in, &want);
    ck_op("layer_norm_fwd", &params, in, 3, &want, 1, relative(WIDTH),
          absolute(WIDTH, in[1], in[2]));
}
