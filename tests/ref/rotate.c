// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_rotate_fwd(const struct host *x, const struct host *table, struct host *y)
{
    const int64_t width = table->dim[1];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t c = i % width;
        y->data[i] = table->data[c] * x->data[i] + table->data[width + c] * x->data[i ^ 1];
    }
}
