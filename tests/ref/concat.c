// SPDX-License-Identifier: MIT

#include "ref/ref.h"

// y[a, begin_i + m, c] = x_i[a, m, c]
void ref_concat_fwd(struct host *const *x, int n, struct host *y)
{
    int64_t begin = 0;

    for (int i = 0; i < n; ++i) {
        for (int64_t j = 0; j < x[i]->count; ++j) {
            const int64_t c = j % y->dim[2], m = j / y->dim[2] % x[i]->dim[1];
            const int64_t a = j / (y->dim[2] * x[i]->dim[1]);
            y->data[(a * y->dim[1] + begin + m) * y->dim[2] + c] = x[i]->data[j];
        }
        begin += x[i]->dim[1];
    }
}
