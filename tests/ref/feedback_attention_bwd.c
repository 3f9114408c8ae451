// SPDX-License-Identifier: MIT
//
// s_j = ((q + u) . k_j + q . U_j + w_j) scale, or (q + u) . (k_j + U_j) scale;  y = sum_j p_j v_j
//
//   ds_j = p_j (dp_j - sum_i p_i dp_i) scale,   dp_j = m_j dy . v_j + dweights_j
//   and each operand's gradient is ds_j times what it is multiplied by

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/ref.h"

// One head of one batch entry: rows of `width`.
struct head {
    const double *q, *u, *dy;
    double *dq, *du;
    int64_t width;
    bool split;
};

// p and ds of the memories, from the scores and the gradients of the weights that they hold.
static void scores_back(double *p, double *ds, int64_t count, double scale)
{
    double row_max = -INFINITY, sum = 0, mean = 0;

    for (int64_t j = 0; j < count; ++j)
        row_max = fmax(row_max, p[j]);
    for (int64_t j = 0; j < count; ++j)
        sum += p[j] = exp(p[j] - row_max);
    for (int64_t j = 0; j < count; ++j)
        mean += (p[j] /= sum) * ds[j];
    for (int64_t j = 0; j < count; ++j)
        ds[j] = p[j] * (ds[j] - mean) * scale;
}

static void add_memory(const struct head *x, double p, double ds, const double *k,
                       const double *place, double *dk, double *dv, double *dplace)
{
    for (int64_t c = 0; c < x->width; ++c) {
        x->dq[c] += ds * (k[c] + place[c]);
        x->du[c] += ds * (x->split ? k[c] : k[c] + place[c]);
        dk[c] += ds * (x->q[c] + x->u[c]);
        dv[c] += p * x->dy[c];
        dplace[c] += ds * (x->split ? x->q[c] : x->q[c] + x->u[c]);
    }
}

// dweights may be NULL.  What `d` holds is added to, so that steps can be summed up.
void ref_feedback_attention_bwd(const struct ref_feedback *x, int64_t count, const struct host *dy,
                                const struct host *dweights, const struct ref_feedback *d)
{
    const int64_t n_heads = x->u->dim[0], width = x->u->dim[1], batch = x->q->dim[0];
    const int64_t first = x->places->dim[0] - count;
    const double scale = 1 / sqrt((double)width);
    double *p = malloc((size_t)(count + 1) * sizeof *p), *ds = malloc((size_t)(count + 1) * 8);

    for (int64_t row = 0; row < batch * n_heads; ++row) {
        const int64_t h = row % n_heads;
        const struct head head = {x->q->data + row * width, x->u->data + h * width,
                                  dy->data + row * width,   d->q->data + row * width,
                                  d->u->data + h * width,   width,
                                  x->place_bias != NULL};
        for (int64_t j = 0; j < count; ++j) {
            const double *k = x->k->data + (j * batch * n_heads + row) * width;
            const double *v = x->v->data + (j * batch * n_heads + row) * width;
            const double *at = x->places->data + ((first + j) * n_heads + h) * width;
            double s = head.split ? x->place_bias->data[(first + j) * n_heads + h] : 0;
            ds[j] = dweights ? dweights->data[j * batch * n_heads + row] : 0;
            for (int64_t c = 0; c < width; ++c) {
                s += (head.q[c] + head.u[c]) * k[c] +
                     (head.split ? head.q[c] : head.q[c] + head.u[c]) * at[c];
                ds[j] += ref_feedback_factor(x, count, row, j) * head.dy[c] * v[c];
            }
            p[j] = s * scale;
        }
        scores_back(p, ds, count, scale);
        for (int64_t j = 0; j < count; ++j) {
            const int64_t memory = (j * batch * n_heads + row) * width;
            const int64_t place = (first + j) * n_heads + h;
            add_memory(&head, ref_feedback_factor(x, count, row, j) * p[j], ds[j],
                       x->k->data + memory, x->places->data + place * width, d->k->data + memory,
                       d->v->data + memory, d->places->data + place * width);
            if (head.split)
                d->place_bias->data[place] += ds[j];
        }
    }
    free(p);
    free(ds);
}
