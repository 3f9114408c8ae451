// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

void ref_feedback_mix_fwd(const struct host *weights, int64_t first, const struct host *sum,
                          struct host *const *x, int n_x, struct host *y)
{
    double row_max = -INFINITY, total = 0;
    for (int64_t i = 0; i < weights->count; ++i)
        row_max = fmax(row_max, weights->data[i]);
    for (int64_t i = 0; i < weights->count; ++i)
        total += exp(weights->data[i] - row_max);
    for (int64_t i = 0; i < y->count; ++i) {
        y->data[i] = sum ? sum->data[i] : 0;
        for (int k = 0; k < n_x; ++k)
            y->data[i] += exp(weights->data[first + k] - row_max) / total * x[k]->data[i];
    }
}
