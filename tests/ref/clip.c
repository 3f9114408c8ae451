// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

double ref_norm(struct host *const *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; ++i)
        for (int64_t j = 0; j < x[i]->count; ++j)
            sum += x[i]->data[j] * x[i]->data[j];
    return sqrt(sum);
}

double ref_clip_factor(double norm, double max_norm, int d2l)
{
    if (d2l)
        return norm > max_norm ? max_norm / norm : 1;
    return fmin(1, max_norm / (norm + 1e-6));
}
