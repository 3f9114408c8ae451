// SPDX-License-Identifier: MIT
//
// A token of each row of scores, given the generator's words.

#include <math.h>

#include "base/philox.h"
#include "ref/ref.h"

// Whether column c is among the k best of a row; the first of equals is the better one.
static bool is_among_best(const double *row, int64_t width, int64_t c, int64_t k)
{
    int64_t n_better = 0;

    if (k >= width)
        return true;
    for (int64_t i = 0; i < width; ++i)
        n_better += row[i] > row[c] || (row[i] == row[c] && i < c);
    return n_better < k;
}

static double uniform(uint64_t seed, int64_t position, int64_t row)
{
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)row, 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];

    attncl__philox4x32(counter, key, words);
    return ((double)words[0] + words[1] * 0x1p-32) * 0x1p-32;
}

static double draw(const struct ref_sample *s, const double *row, int64_t width, double at)
{
    const int64_t k = s->temperature == 0 ? 1 : s->top_k > 0 && s->top_k < width ? s->top_k : width;
    double largest = -INFINITY, sum = 0;
    int64_t token = 0;

    for (int64_t c = 0; c < width; ++c) {
        if (!isfinite(row[c]))
            return -1;
        largest = fmax(largest, row[c]);
    }
    const double temperature = s->temperature == 0 ? 1 : s->temperature; // of one token any will do
    for (int64_t c = 0; c < width; ++c)
        if (is_among_best(row, width, c, k))
            sum += exp((row[c] - largest) / temperature);
    double left = at * sum;
    for (int64_t c = 0; c < width; ++c) {
        const double weight =
            is_among_best(row, width, c, k) ? exp((row[c] - largest) / temperature) : 0;
        if (weight == 0)
            continue;
        token = c;
        if (left < weight)
            break;
        left -= weight;
    }
    return (double)token;
}

void ref_sample_fwd(const struct ref_sample *s, const struct host *x, int64_t position,
                    struct host *y)
{
    const int64_t width = x->dim[1];

    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = draw(s, x->data + i * width, width, uniform(s->seed, position, i));
}

// step: the position and the tokens; drawn: [R, B]; window: NULL or [W, B].
void ref_sample_store_fwd(const struct host *tokens, struct host *step, struct host *drawn,
                          struct host *window)
{
    const int64_t position = (int64_t)step->data[0], n = tokens->count;

    for (int64_t b = 0; b < n; ++b) {
        drawn->data[position % drawn->dim[0] * n + b] = tokens->data[b];
        step->data[1 + b] = fmax(tokens->data[b], 0);
    }
    step->data[0] = (double)(position + 1);
    for (int64_t i = 0; window && i < window->count; ++i)
        window->data[i] = i + n < window->count ? window->data[i + n] : step->data[1 + i % n];
}
