// SPDX-License-Identifier: MIT

#include "ref/ref.h"

// history[position] = u, rounded to its type
void ref_spatial_gate_step_fwd(const struct host *weight, const struct host *bias,
                               const struct host *u, const struct host *z1, int64_t position,
                               struct host *history, struct host *y)
{
    const struct host *row =
        attncl__is_16_bit(history->dtype) ? host_stored(host_copy(u), history->dtype) : u;
    const double *w = weight->data + position * weight->dim[1];

    for (int64_t i = 0; i < u->count; ++i) {
        double gate = bias->data[position];
        history->data[position * u->count + i] = row->data[i];
        for (int64_t j = 0; j <= position; ++j)
            gate += w[j] * history->data[j * u->count + i];
        y->data[i] = z1->data[i] * gate;
    }
}
