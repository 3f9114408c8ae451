// SPDX-License-Identifier: MIT
// Weights that are updated in place by their gradients, at the end of a graph: all that was built before reads the
// old values.

#include <inttypes.h>
#include <math.h>

#include "attncl/ops.h"
#include "attncl/optim.h"
#include "fuzz/graphs/plan.h"

#define LEARNING_RATE 0.1
#define DECAY         0.75

enum { SGD, ACCUMULATE, AVERAGE, ZERO, N_KINDS };

void updates_choose(struct plan *p, struct question *q, int percent)
{
    if (p->n_runs > 1 || !plan_chance(p, percent))
        return;
    for (int i = 0; i < q->n_x; ++i) {
        const struct plan_value *v = &p->value[q->x[i]];
        if (v->source == WEIGHT && v->h->dtype == ATTNCL_F32 && plan_chance(p, 60))
            q->update[q->n_updates++] = (struct update){i, (int)plan_number(p, 0, N_KINDS - 1)};
    }
}

static void build_update(attncl_graph *g, int kind, attncl_value weight, attncl_value gradient)
{
    const attncl_sgd_desc desc = {sizeof desc, LEARNING_RATE, 0, 0, 0, 0};
    const attncl_sgd_values values = {sizeof values, weight, ATTNCL_NONE_VALUE};
    if (kind == SGD) {
        const attncl_value step =
            attncl_graph_constant(g, ATTNCL_I32, 0, NULL, &(const int32_t){0});
        attncl_sgd_update(g, &desc, attncl_sgd_rates(g, &desc, ATTNCL_NONE_VALUE, step), gradient,
                          &values);
    } else if (kind == ACCUMULATE) {
        attncl_accumulate(g, weight, gradient);
    } else if (kind == AVERAGE) {
        attncl_average_update(g, weight, gradient, DECAY);
    } else {
        attncl_zero(g, weight);
    }
}

void updates_build(struct builder *b, const struct question *q, const attncl_value *gradients)
{
    for (int i = 0; i < q->n_updates; ++i) {
        const struct update *u = &q->update[i];
        const attncl_value weight = b->v[q->x[u->x]];
        char name[16];
        build_update(b->g, u->kind, weight, gradients[u->x]);
        snprintf(name, sizeof name, "u%d", q->x[u->x]);
        attncl_graph_output(b->g, name, attncl_activate(b->g, weight, ATTNCL_IDENTITY));
    }
}

int want_updates(const struct question *q, struct host *const *copy, const struct wanted *gradients,
                 struct wanted *w)
{
    static const double keep[N_KINDS] = {1, 1, DECAY, 0},
                        gain[N_KINDS] = {-LEARNING_RATE, 1, 1 - DECAY, 0};
    for (int i = 0; i < q->n_updates; ++i) {
        const struct update *u = &q->update[i];
        const struct host *before = copy[q->x[u->x]], *gradient = gradients[u->x].h;
        struct host *after = host_like(before);
        for (int64_t k = 0; k < after->count; ++k)
            after->data[k] = u->kind == ZERO ? 0
                                             : keep[u->kind] * before->data[k] +
                                                   gain[u->kind] * gradient->data[k];
        snprintf(w[i].name, sizeof w[i].name, "u%d", q->x[u->x]);
        w[i].h = after;
        w[i].tolerance = gradients[u->x].tolerance + 1e-6 * host_largest(before);
    }
    return q->n_updates;
}
