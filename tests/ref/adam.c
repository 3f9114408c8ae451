// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

void ref_adam_step(const struct ref_adam *a, int64_t taken, struct host *p, struct host *g,
                   struct host *m, struct host *v, struct host *largest)
{
    const double t = (double)taken + 1;
    const double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t);
    const double rate = a->now > 0 ? a->now : a->learning_rate;

    for (int64_t i = 0; i < p->count; ++i) {
        double grad = g->data[i];
        if (a->decoupled)
            p->data[i] *= 1 - (a->scheduled_decay ? rate : a->learning_rate) * a->weight_decay;
        else if (a->weight_decay != 0)
            grad += a->weight_decay * p->data[i];
        m->data[i] = a->beta1 * m->data[i] + (1 - a->beta1) * grad;
        v->data[i] = a->beta2 * v->data[i] + (1 - a->beta2) * grad * grad;
        if (largest)
            largest->data[i] = v->data[i] < largest->data[i] ? largest->data[i] : v->data[i];
        const double root = sqrt(largest ? largest->data[i] : v->data[i]);
        if (a->optimized)
            p->data[i] -= rate * sqrt(c2) / c1 * m->data[i] / (root + a->eps);
        else
            p->data[i] -= rate / c1 * m->data[i] / (root / sqrt(c2) + a->eps);
    }
}
