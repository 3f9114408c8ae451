// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

void ref_layer_norm_fwd(const struct host *x, const struct host *weight, const struct host *bias,
                        double eps, struct host *y)
{
    const int64_t width = weight->count;

    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < width; ++c)
            mean += in[c] / (double)width;
        for (int64_t c = 0; c < width; ++c)
            variance += (in[c] - mean) * (in[c] - mean) / (double)width;
        for (int64_t c = 0; c < width; ++c)
            y->data[first + c] =
                (in[c] - mean) / sqrt(variance + eps) * weight->data[c] + bias->data[c];
    }
}
