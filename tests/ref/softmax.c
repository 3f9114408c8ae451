// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

void ref_softmax_fwd(const struct host *x, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1];

    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first;
        double *out = y->data + first;
        double row_max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < width; ++c)
            row_max = in[c] > row_max || isnan(in[c]) ? in[c] : row_max;
        for (int64_t c = 0; c < width; ++c)
            sum += row_max == -INFINITY ? 0 : exp(in[c] - row_max);
        for (int64_t c = 0; c < width; ++c)
            out[c] = row_max == -INFINITY ? 0 : exp(in[c] - row_max) / sum;
    }
}
