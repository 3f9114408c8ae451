// SPDX-License-Identifier: MIT
//
// dx_c = y_c (dy_c - sum_k y_k dy_k), and 0 from a row's length on

#include "ref/ref.h"

void ref_softmax_bwd(const struct host *y, const struct host *dy, struct host *dx)
{
    ref_masked_softmax_bwd(y, dy, NULL, dx);
}

// lens: [B] or [B, Q] of y [B, Q, K], NULL: none
void ref_masked_softmax_bwd(const struct host *y, const struct host *dy, const struct host *lens,
                            struct host *dx)
{
    const int64_t width = y->dim[y->rank - 1];

    for (int64_t first = 0; first < y->count; first += width) {
        const int64_t row = first / width, per = lens ? y->count / width / lens->count : 1;
        const double length = lens ? lens->data[row / per] : (double)width;
        double sum = 0;
        for (int64_t k = first; k < first + width; ++k)
            sum += y->data[k] * dy->data[k];
        for (int64_t k = first; k < first + width; ++k)
            dx->data[k] = (double)(k - first) < length ? y->data[k] * (dy->data[k] - sum) : 0;
    }
}
