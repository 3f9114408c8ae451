// SPDX-License-Identifier: MIT
// Gradients of values that every iteration of a loop reads: sums over the iterations.

#include "autodiff/loops.h"
#include "base/alloc.h"
#include "graph/nodes.h"

attncl_status attncl__loop_sums_begin(attncl_graph *g, attncl_value position, int32_t n_rows,
                                      int32_t first, struct loop_sums *s)
{
    *s = (struct loop_sums){
        .g = g, .position = position, .n_rows = n_rows, .first = first, .n_values = g->n_values};
    s->stack_of = attncl__alloc_array((size_t)g->n_values, sizeof *s->stack_of);
    REQUIRE(s->stack_of, ATTNCL_ERR_NO_MEMORY, "sums of %d values", g->n_values);
    return ATTNCL_OK;
}

void attncl__loop_sums_free(struct loop_sums *s)
{
    attncl__free(s->stack_of);
    s->stack_of = NULL;
}

// The node that computes x; NULL: none.
static const struct node *producer(const attncl_graph *g, attncl_value x)
{
    const struct value *v = &g->values[x.id];
    return v->kind == VALUE_RESULT ? &g->nodes[v->node] : NULL;
}

// The stack of which x is this iteration's row; 0: none.
static int stack_of_row(const struct loop_sums *s, attncl_value x)
{
    const struct node *node = producer(s->g, x);

    return node && node->cls == &attncl__op_loop_row_fwd && node->in[1] == s->position.id &&
                   s->g->values[node->in[0]].desc.dim[0] == s->n_rows
               ? node->in[0]
               : 0;
}

attncl_value attncl__loop_sums_stack(struct loop_sums *s, attncl_value x)
{
    const struct loop_stack_fwd_params params = {s->n_rows};
    const bool known = x.id < s->n_values;
    const int kept = known && s->stack_of[x.id] ? s->stack_of[x.id] : stack_of_row(s, x);

    if (kept)
        return attncl__graph_handle(s->g, kept);
    const attncl_value stack =
        attncl__graph_add(s->g, &attncl__op_loop_stack_fwd, &params, IN(x, s->position));
    if (known)
        s->stack_of[x.id] = stack.id;
    return stack;
}

// Of an op that sums over rows: without what may be added to the sum.
static int n_inputs(const struct op_class *cls)
{
    return cls->n_in < LOOP_SUM_MAX_IN ? cls->n_in : LOOP_SUM_MAX_IN;
}

// What computes x, where that can be done for all rows at once: ops that sum over rows.
static const struct node *row_sum(const attncl_graph *g, attncl_value x)
{
    const struct node *node = producer(g, x);

    if (!node ||
        (node->cls != &attncl__op_linear_bwd_weight && node->cls != &attncl__op_linear_bwd_bias))
        return NULL;
    for (int i = 0; i < node->cls->n_in; ++i)
        if (g->values[node->in[i]].desc.rank == ATTNCL_MAX_RANK || // no axis is left for the rows
            (i >= LOOP_SUM_MAX_IN && node->in[i] != 0))            // what is added is no row
            return NULL;
    return node;
}

struct loop_sum attncl__loop_sums_add(struct loop_sums *s, attncl_value x)
{
    const struct loop_sum_fwd_params params = {s->first};
    struct loop_sum sum = {.cls = NULL};

    if (attncl__graph_failed(s->g))
        return sum;
    const struct node *node = row_sum(s->g, x);
    if (!node) {
        sum.sum = attncl__graph_add(s->g, &attncl__op_loop_sum_fwd, &params, IN(x, s->position));
        return sum;
    }
    sum.cls = node->cls;
    const int n_in = n_inputs(sum.cls);
    for (int i = 0; i < n_in; ++i) // before nodes are added, which moves this one
        sum.in[i] = attncl__graph_handle(s->g, node->in[i]);
    for (int i = 0; i < n_in; ++i)
        sum.in[i] = attncl__loop_sums_stack(s, sum.in[i]);
    return sum;
}

attncl_value attncl__loop_sum_value(attncl_graph *g, const struct loop_sum *sum)
{
    return sum->cls ? attncl__graph_add(g, sum->cls, NULL, sum->in, n_inputs(sum->cls)) : sum->sum;
}
