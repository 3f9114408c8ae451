// SPDX-License-Identifier: MIT
//
//   h = (x - mean) r,  r = 1 / sqrt(var + eps),  g = dy weight
//   dx = r (g - mean(g) - h mean(g h)),  dweight = sum of dy h,  dbias = sum of dy

#include <math.h>

#include "ref/ref.h"

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
