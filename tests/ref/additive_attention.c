// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

//   p_ij = softmax over j of w . tanh(q_i + k_j), -1e6 from the length on;   y_i = sum_j p_ij v_j
void ref_additive_attention(const struct host *q, const struct host *k, const struct host *v,
                            const struct host *w, const struct host *lens, struct host *y,
                            struct host *weights)
{
    const int64_t n_queries = q->dim[1], n_keys = k->dim[1], n = q->dim[2], width = v->dim[2];
    struct host *scores = host_like(weights);

    for (int64_t i = 0; i < scores->count; ++i) {
        const int64_t row = i / n_keys, j = row / n_queries * n_keys + i % n_keys;
        for (int64_t d = 0; d < n; ++d)
            scores->data[i] += w->data[d] * tanh(q->data[row * n + d] + k->data[j * n + d]);
    }
    ref_masked_softmax_fwd(scores, lens, weights);
    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t row = i / width, first = row / n_queries * n_keys;
        y->data[i] = 0;
        for (int64_t j = 0; j < n_keys; ++j)
            y->data[i] +=
                weights->data[row * n_keys + j] * v->data[(first + j) * width + i % width];
    }
}
