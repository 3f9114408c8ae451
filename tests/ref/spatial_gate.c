// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_spatial_gate_fwd(const struct host *weight, const struct host *bias, const struct host *u,
                          const struct host *z1, const struct host *mask, bool causal,
                          struct host *y)
{
    const int64_t length = u->dim[0], columns = u->dim[1] * u->dim[2];

    for (int64_t i = 0; i < length; ++i) {
        for (int64_t bc = 0; bc < columns; ++bc) {
            double gate = bias->data[i];
            for (int64_t j = 0; j < (causal ? i + 1 : length); ++j) {
                const int64_t mask_row = mask && mask->dim[0] > 1 ? i : 0;
                if (!mask || mask->data[mask_row * length + j] != 0)
                    gate += weight->data[i * weight->dim[1] + j] * u->data[j * columns + bc];
            }
            y->data[i * columns + bc] = z1->data[i * columns + bc] * gate;
        }
    }
}
