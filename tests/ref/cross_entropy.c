// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"

void ref_cross_entropy_fwd(const struct host *logits, const struct host *targets, int reduction,
                           int64_t pad, double smoothing, struct host *loss)
{
    const int64_t n_classes = logits->dim[logits->rank - 1];
    double total = 0, counted = 0;

    for (int64_t row = 0; row < targets->count; ++row) {
        const double *x = logits->data + row * n_classes;
        const int64_t target = (int64_t)targets->data[row];
        double row_max = -INFINITY, sum = 0, mean = 0;
        for (int64_t c = 0; c < n_classes; ++c)
            row_max = fmax(row_max, x[c]);
        for (int64_t c = 0; c < n_classes; ++c)
            sum += exp(x[c] - row_max);
        for (int64_t c = 0; c < n_classes && smoothing > 0; ++c)
            mean += x[c] / (double)n_classes;
        const double chosen =
            smoothing > 0 ? (1 - smoothing) * x[target] + smoothing * mean : x[target];
        const double here = pad >= 0 && target == pad ? 0 : log(sum) + row_max - chosen;
        if (reduction == ATTNCL_REDUCE_NONE)
            loss->data[row] = here;
        total += here;
        counted += !(pad >= 0 && target == pad);
    }
    if (reduction == ATTNCL_REDUCE_SUM)
        loss->data[0] = total;
    if (reduction == ATTNCL_REDUCE_MEAN)
        loss->data[0] = counted == 0 ? 0 : total / counted;
}
