// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_masked_softmax_fwd(const struct host *x, const struct host *lens, struct host *y)
{
    struct host *scores = host_like(x);
    const int64_t n_queries = x->dim[1], n_keys = x->dim[2];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = i / n_keys;
        const double len = !lens             ? (double)n_keys
                           : lens->rank == 1 ? lens->data[row / n_queries]
                                             : lens->data[row];
        scores->data[i] = (double)(i % n_keys) < len ? x->data[i] : -1e6;
    }
    ref_softmax_fwd(scores, y);
}
