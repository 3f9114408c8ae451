// SPDX-License-Identifier: MIT
//
// Dropout, given the generator's words: element c of a row is word c mod 4 of the row's block c / 4.

#include <math.h>

#include "base/philox.h"
#include "ref/ref.h"

double ref_dropout_factor(const struct ref_dropout *d, int64_t row, int64_t width, int64_t column)
{
    const uint64_t block = (uint64_t)(row * ((width + 3) / 4) + column / 4);
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), d->site, d->step};
    const uint32_t key[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)};
    uint32_t words[4];

    attncl__philox4x32(counter, key, words);
    return d->p < 1 && words[column % 4] >= d->p * 4294967296.0 ? 1 / (1 - d->p) : 0;
}

void ref_dropout_fwd(const struct ref_dropout *d, const struct host *x, int64_t position,
                     const struct host *residual, struct host *y)
{
    const int64_t width = x->rank > 0 ? x->dim[x->rank - 1] : 1;

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = position * (x->count / width) + i / width;
        y->data[i] = x->data[i] * ref_dropout_factor(d, row, width, i % width) +
                     (residual ? residual->data[i] : 0);
    }
}
