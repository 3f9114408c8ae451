// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_spatial_gate_step_fwd(const struct host *weight, const struct host *bias,
                               const struct host *u, const struct host *z1, int64_t position,
                               struct host *history, struct host *y)
{
    const double *w = weight->data + position * weight->dim[1];

    for (int64_t i = 0; i < u->count; ++i) {
        double gate = bias->data[position];
        history->data[position * u->count + i] = u->data[i];
        for (int64_t j = 0; j <= position; ++j)
            gate += w[j] * history->data[j * u->count + i];
        y->data[i] = z1->data[i] * gate;
    }
}
