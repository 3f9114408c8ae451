// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

// log K, -INFINITY outside the support; a distance that is NaN stays NaN.
static double log_kernel(int kind, double sigma, double u)
{
    if (isnan(u) && kind != 2)
        return u;
    switch (kind) {
    case 0:
        return -u * u / (2 * sigma * sigma);
    case 1:
        return fabs(u) < 1 ? 0 : -INFINITY;
    case 2:
        return 0;
    default:
        return fabs(u) < 1 ? log(1 - fabs(u)) : -INFINITY;
    }
}

// Relative to the largest: 0 outside a support; NaN where a Gaussian's query is infinite.
static double weight(int kind, double log, double max_log)
{
    return kind != 0 && log == -INFINITY ? 0 : exp(log - max_log);
}

void ref_attention_pooling_fwd(int kind, double sigma, const struct host *x, const struct host *y,
                               const struct host *z, struct host *out, struct host *weights)
{
    const int64_t n = x->count, m = z->count;

    for (int64_t j = 0; j < m; ++j) {
        double max_log = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; ++i)
            max_log = fmax(max_log, log_kernel(kind, sigma, x->data[i] - z->data[j]));
        for (int64_t i = 0; i < n; ++i)
            sum += weight(kind, log_kernel(kind, sigma, x->data[i] - z->data[j]), max_log);
        out->data[j] = 0;
        for (int64_t i = 0; i < n; ++i) {
            const double e =
                weight(kind, log_kernel(kind, sigma, x->data[i] - z->data[j]), max_log);
            weights->data[i * m + j] = sum != 0 ? e / sum : 0;
            out->data[j] += sum != 0 ? weights->data[i * m + j] * y->data[i] : 0;
        }
    }
}
