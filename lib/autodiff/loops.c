// SPDX-License-Identifier: MIT
// For the loop that differentiates another: the results of its iterations are kept, a row each, and
// the gradients of values that every iteration reads are summed over the iterations.

#include "autodiff/loops.h"
#include "base/alloc.h"
#include "graph/nodes.h"

// Results that exist without gradients too, with an axis left for the rows.
static bool can_be_kept(const struct value *v)
{
    return attncl__desc_present(&v->desc) && v->desc.dtype == ATTNCL_F32 &&
           v->desc.rank < ATTNCL_MAX_RANK;
}

int attncl__loop_saves_next_node(const attncl_graph *g)
{
    return g->n_nodes;
}

struct loop_saves attncl__loop_saves_add(attncl_graph *g, int first_node, attncl_value position,
                                         int32_t n_rows)
{
    const struct loop_stack_fwd_params params = {n_rows};
    const int first_stack = g->n_nodes;

    for (int n = first_node; n < first_stack; ++n)
        for (int i = 0; i < g->nodes[n].cls->n_out && !attncl__graph_failed(g); ++i) {
            const int value = g->nodes[n].out[i];
            if (can_be_kept(&g->values[value]))
                attncl__graph_add(g, &attncl__op_loop_stack_fwd, &params,
                                  IN(attncl__graph_handle(g, value), position));
        }
    return (struct loop_saves){first_node, first_stack, g->n_nodes - first_stack};
}

attncl_status attncl__loop_reads_begin(attncl_graph *g, const struct loop_saves *saves,
                                       attncl_value position, struct loop_reads *r)
{
    *r = (struct loop_reads){.saves = *saves,
                             .rows = attncl__alloc_array((size_t)saves->n_stacks, sizeof *r->rows)};
    REQUIRE(r->rows, ATTNCL_ERR_NO_MEMORY, "rows of %d stacks", saves->n_stacks);
    for (int i = 0; i < saves->n_stacks && !attncl__graph_failed(g); ++i) {
        const int stack = g->nodes[saves->first_stack + i].out[0];
        r->rows[i] = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL,
                                       IN(attncl__graph_handle(g, stack), position))
                         .id;
    }
    return ATTNCL_OK;
}

// The result of a node that was added again, of which stack `i` has the rows.
static int added_again(const attncl_graph *g, const struct loop_reads *r, int first_again, int i)
{
    const int kept = g->nodes[r->saves.first_stack + i].in[0];
    const struct node *before = &g->nodes[g->values[kept].node];
    const struct node *again = &g->nodes[first_again + g->values[kept].node - r->saves.first_node];
    int out = 0;

    assert(before->cls == again->cls);
    while (before->out[out] != kept)
        ++out;
    return again->out[out];
}

// What is read in place of `value`: a row, or the same part of one.
static int replacement(attncl_graph *g, int *replaced_by, int n_values, int value)
{
    const struct value v = g->values[value];

    if (value >= n_values || value == 0)
        return value;
    if (replaced_by[value] == 0)
        replaced_by[value] =
            v.kind == VALUE_VIEW && v.base < n_values && replaced_by[v.base] != 0
                ? attncl__graph_view(g, attncl__graph_handle(g, replaced_by[v.base]), &v.desc).id
                : value;
    return replaced_by[value];
}

attncl_status attncl__loop_reads_replace(attncl_graph *g, const struct loop_reads *r,
                                         int first_again)
{
    const int n_values = g->n_values;
    int *const replaced_by = attncl__alloc_array((size_t)n_values, sizeof *replaced_by);

    REQUIRE(replaced_by, ATTNCL_ERR_NO_MEMORY, "rows for %d values", n_values);
    for (int i = 0; i < r->saves.n_stacks && !attncl__graph_failed(g); ++i)
        replaced_by[added_again(g, r, first_again, i)] = r->rows[i];
    for (int n = first_again; n < g->n_nodes && !attncl__graph_failed(g); ++n)
        for (int i = 0; i < g->nodes[n].cls->n_in; ++i)
            g->nodes[n].in[i] = replacement(g, replaced_by, n_values, g->nodes[n].in[i]);
    attncl__free(replaced_by);
    return ATTNCL_OK;
}

void attncl__loop_reads_free(struct loop_reads *r)
{
    attncl__free(r->rows);
    r->rows = NULL;
}

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

// The stack that x is this iteration's row of; 0: x is no such row.
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

// The number of inputs that a sum over rows reads.  Inputs behind them are added to the sum.
static int n_inputs(const struct op_class *cls)
{
    return cls->n_in < LOOP_SUM_MAX_IN ? cls->n_in : LOOP_SUM_MAX_IN;
}

// The node that computes x as a sum over rows, which one node can do for the rows of all iterations;
// NULL: there is none.
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
