// SPDX-License-Identifier: MIT
//
//   p_ij = softmax over visible j of scale * (q_i . k_j),   y_i = sum_j m_ij p_ij v_j
//
// m: the mask of dropout, or 1.

#include <math.h>
#include <stdlib.h>

#include "ref/ref.h"

static bool visible(const struct ref_attention *a, int64_t b, int64_t i, int64_t j, int64_t offset)
{
    const struct host *m = a->mask;
    const int64_t at = i + offset;

    if (a->causal && j > at)
        return false;
    if (a->window > 0 && llabs(at - j) >= a->window)
        return false;
    if (!m)
        return true;
    const int64_t row = m->dim[0] == 1 ? 0 : i, entry = m->dim[2] == 1 ? 0 : b;
    return m->data[(row * m->dim[1] + j) * m->dim[2] + entry] != 0;
}

static int64_t length(const struct ref_attention *a, int64_t b, int64_t i)
{
    const struct host *lens = a->valid_lens;

    if (!lens)
        return INT64_MAX;
    return (int64_t)lens->data[lens->rank == 1 ? b : b * lens->dim[1] + i];
}

// The score of an unseen key, whose weight is 0.
static const double HIDDEN = -2e300;

// Turns scores into weights.  NaN or +inf among the visible ones makes all of these NaN, with `reaching` the others too;
// where all are -inf the weights are 0.
static void softmax_row(double *p, int64_t n, bool reaching)
{
    double row_max = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; ++j)
        row_max = p[j] == HIDDEN ? row_max : fmax(row_max, p[j]);
    for (int64_t j = 0; j < n; ++j)
        sum += p[j] == HIDDEN || p[j] == -INFINITY ? 0 : exp(p[j] - row_max);
    for (int64_t j = 0; j < n; ++j)
        p[j] = p[j] == HIDDEN ? (reaching ? 0 * sum : 0) : sum != 0 ? exp(p[j] - row_max) / sum : 0;
}

void ref_attention_weights(const struct ref_attention *a, const struct host *q,
                           const struct host *k, struct host *weights)
{
    const int64_t n_heads = q->dim[1], n_queries = q->dim[2], width = q->dim[3];
    const int64_t n_keys = k->dim[2];

    for (int64_t head = 0; head < q->dim[0] * n_heads; ++head)
        for (int64_t i = 0; i < n_queries; ++i) {
            const double *qi = q->data + (head * n_queries + i) * width;
            double *p = weights->data + (head * n_queries + i) * n_keys;
            const int64_t b = head / n_heads;
            for (int64_t j = 0; j < n_keys; ++j) {
                const double *kj = k->data + (head * n_keys + j) * width;
                double dot = 0;
                for (int64_t d = 0; d < width; ++d)
                    dot += qi[d] * kj[d];
                p[j] = !visible(a, b, i, j, n_keys - n_queries) ? HIDDEN
                       : j >= length(a, b, i)                   ? -1e6
                                                                : a->scale * dot;
            }
            softmax_row(p, n_keys, a->reaching);
        }
}

void ref_attention_drop(const struct ref_attention *a, struct host *weights)
{
    if (a->dropout.p > 0)
        ref_dropout_fwd(&a->dropout, weights, 0, NULL, weights);
}

static void mix(const struct host *weights, const struct host *v, bool time_first, bool reaching,
                struct host *y)
{
    const int64_t n_batch = v->dim[0], n_heads = v->dim[1], n_keys = v->dim[2], width = v->dim[3];
    const int64_t n_queries = weights->dim[2];

    for (int64_t b = 0; b < n_batch; ++b)
        for (int64_t h = 0; h < n_heads; ++h)
            for (int64_t i = 0; i < n_queries; ++i)
                for (int64_t e = 0; e < width; ++e) {
                    const int64_t head = b * n_heads + h;
                    const int64_t row = time_first ? i * n_batch + b : b * n_queries + i;
                    double sum = 0;
                    for (int64_t j = 0; j < n_keys; ++j) {
                        const double p = weights->data[(head * n_queries + i) * n_keys + j];
                        if (p != 0 || reaching)
                            sum += p * v->data[(head * n_keys + j) * width + e];
                    }
                    y->data[(row * n_heads + h) * width + e] = sum;
                }
}

void ref_attention_mix(const struct host *weights, const struct host *v, bool time_first,
                       struct host *y)
{
    mix(weights, v, time_first, false, y);
}

void ref_attention_reach(const struct host *weights, const struct host *v, bool time_first,
                         struct host *y)
{
    mix(weights, v, time_first, true, y);
}
