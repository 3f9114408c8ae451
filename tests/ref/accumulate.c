// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_accumulate_fwd(struct host *into, const struct host *x, double keep, double gain)
{
    for (int64_t i = 0; i < into->count; ++i)
        into->data[i] = keep * into->data[i] + (x ? gain * x->data[i] : 0);
}
