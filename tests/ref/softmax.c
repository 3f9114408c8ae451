// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

void ref_softmax_fwd(const struct host *x, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1];

    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first;
        double *out = y->data + first;
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < width; ++c)
            top = in[c] > top ? in[c] : top;
        for (int64_t c = 0; c < width; ++c)
            sum += top == -INFINITY ? 0 : exp(in[c] - top);
        for (int64_t c = 0; c < width; ++c)
            out[c] = top == -INFINITY ? 0 : exp(in[c] - top) / sum;
    }
}
