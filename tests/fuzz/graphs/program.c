// SPDX-License-Identifier: MIT
// A plan as a graph, and as text.

#include <inttypes.h>

#include "fuzz/graphs/plan.h"
#include "support/test.h"

static void build_leaf(struct builder *b, attncl_context *context, const struct plan *p, int i,
                       attncl_tensor **weight)
{
    const struct plan_value *v = &p->value[i];
    const struct host *h = v->h;
    char name[16];
    snprintf(name, sizeof name, "v%d", i);
    if (v->source == WEIGHT) {
        ck_ok(attncl_tensor_create(context, h->dtype, h->rank, h->dim, h->dtype, host_pack(h),
                                   weight));
        b->v[i] = attncl_graph_tensor(b->g, *weight);
    } else if (v->source == CONSTANT) {
        b->v[i] = attncl_graph_constant(b->g, h->dtype, h->rank, h->dim, host_pack(h));
    } else if (h->dtype == ATTNCL_I32) {
        b->v[i] = attncl_graph_index_input(b->g, name, h->rank, h->dim, v->low, v->high);
    } else {
        b->v[i] = attncl_graph_input(b->g, name, h->dtype, h->rank, h->dim);
    }
}

void program_build(struct builder *b, attncl_context *context, const struct plan *p,
                   const struct question *q, attncl_tensor *weights[MAX_VALUES])
{
    attncl_value y[MAX_VALUES], dy[MAX_VALUES], x[MAX_VALUES], dx[MAX_VALUES];
    char name[16];
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source != RESULT)
            build_leaf(b, context, p, i, &weights[i]);
    for (int i = 0; i < p->n_steps; ++i)
        b->v[p->step[i].out] = p->step[i].op->build(b, &p->step[i]);
    for (int i = 0; i < q->n_y; ++i) {
        snprintf(name, sizeof name, "y%d", q->y[i]);
        y[i] = b->v[q->y[i]];
        attncl_graph_output(b->g, name, y[i]);
    }
    for (int i = 0; i < q->n_dy; ++i)
        dy[i] = b->v[q->dy[i]];
    for (int i = 0; i < q->n_x; ++i)
        x[i] = b->v[q->x[i]];
    if (q->n_x > 0)
        attncl_graph_gradient(b->g, (size_t)q->n_dy, y, dy, (size_t)q->n_x, x, dx);
    for (int i = 0; i < q->n_x; ++i) {
        snprintf(name, sizeof name, "d%d", q->x[i]);
        attncl_graph_output(b->g, name, dx[i]);
    }
    updates_build(b, q, dx);
}

attncl_status program_write_inputs(const struct plan *p, attncl_graph *g)
{
    char name[16];
    for (int i = 0; i < p->n_values; ++i) {
        const struct host *h = p->value[i].h;
        snprintf(name, sizeof name, "v%d", i);
        if (p->value[i].source == INPUT &&
            attncl_graph_write(g, name, host_pack(h), host_bytes(h)) != ATTNCL_OK)
            return ATTNCL_ERR_ARGUMENT;
    }
    return ATTNCL_OK;
}

void plan_print(FILE *to, const struct plan *p)
{
    static const char *const sources[] = {"result", "input", "weight", "constant"};

    fprintf(to, "graph %" PRIu64 ": %d queues, %d runs\n", p->seed, p->n_queues, p->n_runs);
    for (int i = 0; i < p->n_values; ++i) {
        const struct plan_value *v = &p->value[i];
        fprintf(to, "  v%d: %s %s", i, sources[v->source], attncl_dtype_name(v->h->dtype));
        for (int k = 0; k < v->h->rank; ++k)
            fprintf(to, " %" PRId64, v->h->dim[k]);
        fprintf(to, "\n");
    }
    for (int i = 0; i < p->n_steps; ++i) {
        const struct plan_step *s = &p->step[i];
        fprintf(to, "  v%d = %s:", s->out, s->op->name);
        for (int k = 0; k < MAX_OPERANDS; ++k)
            if (s->in[k] != ABSENT)
                fprintf(to, " [%d] v%d", k, s->in[k]);
        fprintf(to, "; %g;", s->real);
        for (int k = 0; k < MAX_NUMBERS; ++k)
            fprintf(to, " %" PRId64, s->number[k]);
        fprintf(to, "\n");
    }
}
