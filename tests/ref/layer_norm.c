// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_layer_norm_fwd(const struct host *x, const struct host *weight, const struct host *bias,
                        double eps, struct host *y)
{
    const int64_t width = weight->count;

    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first;
        double mean = 0, variance = 0;
        for (int64_t c = 0; bias && c < width; ++c)
            mean += in[c] / (double)width;
        for (int64_t c = 0; c < width; ++c)
            variance += (in[c] - mean) * (in[c] - mean) / (double)width;
        for (int64_t c = 0; c < width; ++c)
            y->data[first + c] = (in[c] - mean) / sqrt(variance + eps) * weight->data[c] +
                                 (bias ? bias->data[c] : 0);
    }
}

// -- the op

static const struct layer_norm_fwd_params usual = {1e-5f};

static void norm(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_fwd(in[0], in[1], in[2], (double)usual.eps, out[0]);
}

static void gradients(const void *p, struct host *const *in, struct host *const *dy,
                      struct host *const *dx)
{
    (void)p;
    ref_layer_norm_bwd(in[0], in[1], dy[0], (double)usual.eps, dx[0], dx[1], dx[2]);
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

// Rows that a GPU does not hold have their spread measured around the mean of their first columns: unlike the rest here.
static void set_steps(struct host *const *in)
{
    const int64_t width = in[1]->count;

    for (int64_t i = 0; i < in[0]->count; ++i) {
        const int64_t row = i / width, c = i % width;
        double *const x = &in[0]->data[i];
        *x = row == 0   ? *x + (c < 4096 ? 1e4 : -1e4)
             : row == 1 ? *x + 1e4 + (double)c
             : row == 2 ? (c == 0 ? 1e3 : *x + 100)
                        : -7.25;
    }
}

// Squares that sums of large ones would swallow one by one, beside them in every lane of a vector.
static void set_small_ones(struct host *const *in)
{
    for (int64_t i = 0; i < in[0]->count; ++i) {
        const double size = i % in[1]->count < 32 ? 1 : 0.00023; // its square: 0.89 of 2^-24
        in[0]->data[i] = (double)(float)(i % 2 ? size : -size);
    }
}

SPEC_BUILD(build, attncl_layer_norm(g, in[0], in[1], in[2],
                                    ((const struct layer_norm_fwd_params *)params)->eps))

OP_SPEC(layer_norm_fwd, .in = "x f32 R* C*; weight f32 C*; bias f32 C*", .out = "y f32 R* C*",
        .ref = norm, .build = build, .grad = "x weight bias", .ref_bwd = gradients,
        .grad_tolerance = 4e-6, .allow = allow,
        .smoke = "R=1,5 C=1,7,16; R=70 C=19; R=2x5 C=3x7; R=- C=2x5x3; R=3 C=132,257; R=1 C=8209",
        .gpu = "R=65536 C=64,1023,1024,50257", .special = "R=3 C=21",
        .full = "R=4 C=256; R=9 C=32; R=3 C=1024,1025,4100; R=2 C=8196; R=300 C=33; R=37 C=64",
        .data = OFFSET | SCALED | PEAK | ALIKE | RISING, .leeway = MEETS,
        .cases = {{"rows", &usual},
                  {"small ones", &usual, .grad = "", .smoke = "R=1 C=32768", .special = "",
                   .data = NORMAL, .prepare = set_small_ones},
                  {"steps", &usual, .grad = "", .smoke = "R=4 C=8196", .special = "",
                   .data = NORMAL, .prepare = set_steps}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "eps is -1", SPEC_PARAMS(layer_norm_fwd, -1.0f)}});

// -- RMS norm: mean and bias are 0

static void rms(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_fwd(in[0], in[1], NULL, (double)usual.eps, out[0]);
}

// dx = r (g - h mean(g h)), dweight = sum of dy h; h = x r, r = 1 / sqrt(mean(x^2) + eps), g = dy weight
static void rms_gradients(const void *p, struct host *const *in, struct host *const *dy,
                          struct host *const *dx)
{
    const int64_t width = in[1]->count;
    const double n = (double)width;

    (void)p;
    for (int64_t c = 0; c < width; ++c)
        dx[1]->data[c] = 0;
    for (int64_t first = 0; first < in[0]->count; first += width) {
        const double *x = in[0]->data + first, *d = dy[0]->data + first;
        double square = 0, gh = 0;
        for (int64_t c = 0; c < width; ++c)
            square += x[c] * x[c] / n;
        const double r = 1 / sqrt(square + (double)usual.eps);
        for (int64_t c = 0; c < width; ++c)
            gh += d[c] * in[1]->data[c] * x[c] * r / n;
        for (int64_t c = 0; c < width; ++c) {
            dx[0]->data[first + c] = r * (d[c] * in[1]->data[c] - x[c] * r * gh);
            dx[1]->data[c] += d[c] * x[c] * r;
        }
    }
}

static void allow_rms(const struct spec_point *p, int k, const struct host *want,
                      struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = relative(spec_extent(p, 'C')) * fabs(want->data[i]);
}

SPEC_BUILD(build_rms,
           attncl_rms_norm(g, in[0], in[1], ((const struct rms_norm_fwd_params *)params)->eps))

OP_SPEC(rms_norm_fwd, .in = "x f32 R* C*; weight f32 C*", .out = "y f32 R* C*", .ref = rms,
        .build = build_rms, .grad = "x weight", .ref_bwd = rms_gradients, .grad_tolerance = 4e-6,
        .allow = allow_rms,
        .smoke = "R=1,5 C=3,7,16; R=70 C=19; R=- C=2x5x3; R=3 C=257; R=1 C=8209",
        .gpu = "R=65536 C=1024", .special = "R=3 C=21", .full = "R=4 C=256; R=3 C=4100; R=300 C=33",
        .data = OFFSET | SCALED | PEAK | ALIKE | RISING, .leeway = MEETS,
        .cases = {{"rows", SPEC_PARAMS(rms_norm_fwd, 1e-5f)}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "eps is -1", SPEC_PARAMS(rms_norm_fwd, -1.0f)}});
