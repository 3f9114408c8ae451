// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

// The first place of the largest; NaN is never it.
void ref_argmax_fwd(const struct host *x, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1];

    for (int64_t i = 0; i < y->count; ++i) {
        const double *row = x->data + i * width;
        double largest = -INFINITY;
        int64_t place = 0;
        for (int64_t c = width - 1; c >= 0; --c)
            if (row[c] >= largest) {
                largest = row[c];
                place = c;
            }
        y->data[i] = (double)place;
    }
}
