// SPDX-License-Identifier: MIT
//
//   h = (x - mean) r,  r = 1 / sqrt(var + eps),  g = dy weight
//   dx = r (g - mean(g) - h mean(g h)),  dweight = sum of dy h,  dbias = sum of dy

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

void ref_layer_norm_bwd(const struct host *x, const struct host *weight, const struct host *dy,
                        double eps, struct host *dx, struct host *dweight, struct host *dbias)
{
    const int64_t width = weight->count;
    const double n = (double)width;

    for (int64_t c = 0; c < width; ++c)
        dweight->data[c] = dbias->data[c] = 0;
    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first, *d = dy->data + first;
        double mean = 0, variance = 0, g_mean = 0, gh_mean = 0;
        for (int64_t c = 0; c < width; ++c)
            mean += in[c] / n;
        for (int64_t c = 0; c < width; ++c)
            variance += (in[c] - mean) * (in[c] - mean) / n;
        const double r = 1 / sqrt(variance + eps);
        for (int64_t c = 0; c < width; ++c) {
            g_mean += d[c] * weight->data[c] / n;
            gh_mean += d[c] * weight->data[c] * (in[c] - mean) * r / n;
        }
        for (int64_t c = 0; c < width; ++c) {
            const double h = (in[c] - mean) * r;
            dx->data[first + c] = r * (d[c] * weight->data[c] - g_mean - h * gh_mean);
            dweight->data[c] += d[c] * h;
            dbias->data[c] += d[c];
        }
    }
}

// -- the op

static const struct layer_norm_bwd_params params = {1e-5f};

static void gradients(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_bwd(in[0], in[1], in[2], (double)params.eps, out[0], out[1], out[2]);
}

// Sums of n terms of size up to 4, and the roundings of each: a row for dx, a column for the other two.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double n = spec_extent(p, k == 0 ? 'C' : 'R');
    const double rounding = 4 * 6e-8 * (16 + 2 * sqrt(n)) * (k == 0 ? 4 : sqrt(n));

    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 4e-6 * fabs(want->data[i]) + rounding;
}

// Several blocks of rows, the last of which is short.
OP_SPEC(layer_norm_bwd, .in = "x f32 R* C*; weight f32 C*; dy f32 R* C*",
        .out = "dx f32 R* C*; dweight f32 C*; dbias f32 C*", .ref = gradients, .allow = allow,
        .smoke = "R=3,4 C=1,7; R=37 C=19,64; R=2x5 C=3x7; R=300 C=33; R=5 C=132",
        .full = "R=9 C=1028; R=3 C=4099; R=2 C=4100", .special = "R=3 C=21", .data = OFFSET,
        .cases = {{.params = &params, .leeway = MEETS}});
