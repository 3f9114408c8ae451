// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_add_fwd(const struct host *a, const struct host *b, struct host *y)
{
    for (int64_t i = 0; i < a->count; ++i)
        y->data[i] = a->data[i] + b->data[i];
}

void ref_mul_fwd(const struct host *a, const struct host *b, struct host *y)
{
    for (int64_t i = 0; i < a->count; ++i)
        y->data[i] = a->data[i] * b->data[i];
}
