// SPDX-License-Identifier: MIT

#include <math.h>
#include <string.h>

#include "ref/ref.h"

// cache[position] = row, rounded to the cache's type
static void store(struct host *cache, int64_t position, const struct host *row)
{
    const struct host *rounded =
        attncl__is_16_bit(cache->dtype) ? host_stored(host_copy(row), cache->dtype) : row;
    memcpy(cache->data + position * row->count, rounded->data,
           (size_t)row->count * sizeof rounded->data[0]);
}

// keys[t] = k, values[t] = v, then softmax attention of each head over positions 0 .. t
void ref_attention_step_fwd(const struct host *q, const struct host *k, const struct host *v,
                            int64_t position, int64_t n_heads, double scale, struct host *keys,
                            struct host *values, struct host *y)
{
    const int64_t n = q->count, width = q->dim[1] / n_heads;
    double *p = host_new(ATTNCL_F32, DIMS(position + 1))->data;

    store(keys, position, k);
    store(values, position, v);
    for (int64_t at = 0; at < n; at += width) { // a head of a batch entry
        double row_max = -INFINITY, sum = 0;
        for (int64_t j = 0; j <= position; ++j) {
            p[j] = 0;
            for (int64_t d = 0; d < width; ++d)
                p[j] += scale * q->data[at + d] * keys->data[j * n + at + d];
            row_max = fmax(row_max, p[j]);
        }
        for (int64_t j = 0; j <= position; ++j)
            sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - row_max);
        for (int64_t e = 0; e < width; ++e) {
            y->data[at + e] = 0;
            for (int64_t j = 0; j <= position; ++j)
                y->data[at + e] += sum == 0 ? 0 : p[j] / sum * values->data[j * n + at + e];
        }
    }
}
