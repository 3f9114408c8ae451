// SPDX-License-Identifier: MIT

#include "attncl/ops.h"
#include "ref/ref.h"

void ref_add_positions_fwd(const struct host *x, const struct host *table, int layout,
                           struct host *y)
{
    const int64_t n_channels = x->dim[2];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = i / n_channels;
        const int64_t t = layout == ATTNCL_LAYOUT_TIME_FIRST ? row / x->dim[1] : row % x->dim[1];
        y->data[i] = x->data[i] + table->data[t * n_channels + i % n_channels];
    }
}

void ref_add_position_at_fwd(const struct host *x, const struct host *table, int64_t position,
                             struct host *y)
{
    const int64_t n_channels = x->dim[1];

    for (int64_t i = 0; i < x->count; ++i)
        y->data[i] = x->data[i] + table->data[position * n_channels + i % n_channels];
}
