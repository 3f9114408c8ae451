// SPDX-License-Identifier: MIT
//
// y = sum_f p_f x_f, p = softmax(weights):  dx_f = p_f dy,  dweights_i = p_i (s_i - sum_f p_f s_f)
// with s_f = dy . x_f of the values that are mixed, 0 for the others

#include <math.h>
#include <stdlib.h>

#include "ref/ref.h"

void ref_feedback_mix_bwd(const struct host *weights, int64_t first, struct host *const *x, int n_x,
                          const struct host *dy, struct host *dx, struct host *dweights)
{
    const int64_t n = weights->count;
    double *p = calloc((size_t)n, sizeof *p), *s = calloc((size_t)n, sizeof *s);
    double row_max = -INFINITY, total = 0, mean = 0;

    for (int64_t i = 0; i < n; ++i)
        row_max = fmax(row_max, weights->data[i]);
    for (int64_t i = 0; i < n; ++i)
        total += p[i] = exp(weights->data[i] - row_max);
    for (int64_t i = 0; i < n; ++i)
        p[i] /= total;
    for (int k = 0; k < n_x; ++k) {
        for (int64_t e = 0; e < dy->count; ++e) {
            dx->data[k * dy->count + e] = p[first + k] * dy->data[e];
            s[first + k] += dy->data[e] * x[k]->data[e];
        }
        mean += p[first + k] * s[first + k];
    }
    for (int64_t i = 0; i < n; ++i)
        dweights->data[i] = p[i] * (s[i] - mean);
    free(p);
    free(s);
}
