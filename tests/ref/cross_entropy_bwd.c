// SPDX-License-Identifier: MIT
//
// dlogits_rv = (softmax(logits_r)_v - (1 - e) [v = target_r] - e / V) dy_r / n,  0 where target_r = pad;
// n: rows that are not padding for the mean (reduction 0), else 1

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"

void ref_cross_entropy_bwd(const struct host *logits, const struct host *targets,
                           const struct host *dy, int reduction, int64_t pad, double smoothing,
                           struct host *dx)
{
    const int64_t width = logits->dim[logits->rank - 1];
    double n = 0;

    for (int64_t r = 0; r < targets->count; ++r)
        n += (int64_t)targets->data[r] != pad || pad < 0;
    for (int64_t r = 0; r < targets->count; ++r) {
        const double *x = logits->data + r * width;
        const double up = dy->data[reduction == ATTNCL_REDUCE_NONE ? r : 0];
        const bool is_pad = pad >= 0 && (int64_t)targets->data[r] == pad;
        double row_max = x[0], sum = 0;
        for (int64_t v = 0; v < width; ++v)
            row_max = fmax(row_max, x[v]);
        for (int64_t v = 0; v < width; ++v)
            sum += exp(x[v] - row_max);
        for (int64_t v = 0; v < width; ++v) {
            const double p = exp(x[v] - row_max) / sum -
                             (1 - smoothing) * (v == (int64_t)targets->data[r]) -
                             smoothing / (double)width;
            dx->data[r * width + v] =
                is_pad ? 0 : p * up / (reduction == ATTNCL_REDUCE_MEAN ? n : 1);
        }
    }
}
