// SPDX-License-Identifier: MIT

#include <math.h>
#include <stdlib.h>

#include "ref/ref.h"

// s_j and, in *size_ret, the sum of the sizes of its terms.
static double score(const struct ref_feedback *x, int64_t count, int64_t j, int64_t b, int64_t h,
                    double *size_ret)
{
    const int64_t n_heads = x->u->dim[0], width = x->u->dim[1], batch = x->q->dim[0];
    const int64_t place = x->places->dim[0] - count + j;
    const double *q = x->q->data + (b * n_heads + h) * width, *u = x->u->data + h * width;
    const double *k = x->k->data + ((j * batch + b) * n_heads + h) * width;
    const double *p = x->places->data + (place * n_heads + h) * width;
    double sum = x->place_bias ? x->place_bias->data[place * n_heads + h] : 0, size = fabs(sum);

    for (int64_t c = 0; c < width; ++c) {
        sum += x->place_bias ? (q[c] + u[c]) * k[c] + q[c] * p[c] : (q[c] + u[c]) * (k[c] + p[c]);
        size += (fabs(q[c]) + fabs(u[c])) * (fabs(k[c]) + fabs(p[c]));
    }
    *size_ret = size / sqrt((double)width);
    return sum / sqrt((double)width);
}

double ref_feedback_factor(const struct ref_feedback *x, int64_t count, int64_t row, int64_t j)
{
    const int64_t first = x->grows ? count * x->q->dim[0] * x->u->dim[0] : 0;
    return x->dropout.p > 0 ? ref_dropout_factor(&x->dropout, first + row, x->k->dim[0], j) : 1;
}

void ref_feedback_attention_fwd(const struct ref_feedback *x, int64_t count, struct host *y,
                                struct host *weights, struct host *bound)
{
    const int64_t n_heads = x->u->dim[0], width = x->u->dim[1], batch = x->q->dim[0];
    const double ulp = ldexp(1, -24);
    double *p = malloc((size_t)(count + 1) * sizeof *p);

    for (int64_t row = 0; row < batch * n_heads; ++row) {
        const int64_t b = row / n_heads, h = row % n_heads;
        double row_max = -INFINITY, sum = 0, largest = 0, size;
        for (int64_t j = 0; j < count; ++j) {
            p[j] = score(x, count, j, b, h, &size);
            row_max = fmax(row_max, p[j]);
            largest = fmax(largest, size);
        }
        for (int64_t j = 0; j < count; ++j)
            sum += p[j] = exp(p[j] - row_max);
        // A score rounds once for each of its terms and a few times more; an exponential is off by
        // as much relatively, as is their sum.
        const double off = 2 * (double)(width + 8) * ulp * largest + (double)(count + 30) * ulp;
        for (int64_t c = 0; c < width; ++c) {
            double mean = 0, spread = 0;
            for (int64_t j = 0; j < count; ++j) {
                const double v = x->v->data[((j * batch + b) * n_heads + h) * width + c];
                const double weight = p[j] / sum * ref_feedback_factor(x, count, row, j);
                mean += weight * v;
                spread += weight * fabs(v);
            }
            y->data[row * width + c] = mean;
            bound->data[row * width + c] = off * spread + 1e-37;
        }
        for (int64_t j = 0; weights && j < count; ++j)
            weights->data[j * batch * n_heads + row] = p[j] / sum;
    }
    free(p);
}
