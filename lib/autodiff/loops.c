// SPDX-License-Identifier: MIT

#include "autodiff/loops.h"
#include "base/alloc.h"
#include "graph/nodes.h"

// A stack needs one axis more than the result.
static bool can_be_kept(const struct value *v)
{
    return attncl__desc_present(&v->desc) && v->desc.dtype == ATTNCL_F32 &&
           v->desc.rank < ATTNCL_MAX_RANK;
}

int attncl__loop_saves_first_node(const attncl_graph *g)
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
                                       attncl_value position, struct loop_reads *reads)
{
    *reads = (struct loop_reads){
        .saves = *saves, .rows = attncl__alloc_array((size_t)saves->n_stacks, sizeof *reads->rows)};
    REQUIRE(reads->rows, ATTNCL_ERR_NO_MEMORY, "rows of %d stacks", saves->n_stacks);
    for (int i = 0; i < saves->n_stacks && !attncl__graph_failed(g); ++i) {
        const int stack = g->nodes[saves->first_stack + i].out[0];
        reads->rows[i] = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL,
                                           IN(attncl__graph_handle(g, stack), position))
                             .id;
    }
    return ATTNCL_OK;
}

// Returns the result, of the nodes that were added again, whose rows stack `i` holds.
static int find_repeated_result(const attncl_graph *g, const struct loop_reads *reads,
                                int first_again, int i)
{
    const int kept = g->nodes[reads->saves.first_stack + i].in[0];
    const struct node *forward = &g->nodes[g->values[kept].node];
    const struct node *again =
        &g->nodes[first_again + g->values[kept].node - reads->saves.first_node];
    int out = 0;

    assert(forward->cls == again->cls);
    while (forward->out[out] != kept)
        ++out;
    return again->out[out];
}

// Returns the value to read in place of `value`: its kept row, or a view of its base's kept row.
static int find_replacement(attncl_graph *g, int *replaced_by, int n_values, int value)
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

attncl_status attncl__loop_reads_replace(attncl_graph *g, const struct loop_reads *reads,
                                         int first_again)
{
    const int n_values = g->n_values;
    int *const replaced_by = attncl__alloc_array((size_t)n_values, sizeof *replaced_by);

    REQUIRE(replaced_by, ATTNCL_ERR_NO_MEMORY, "rows for %d values", n_values);
    for (int i = 0; i < reads->saves.n_stacks && !attncl__graph_failed(g); ++i)
        replaced_by[find_repeated_result(g, reads, first_again, i)] = reads->rows[i];
    for (int n = first_again; n < g->n_nodes && !attncl__graph_failed(g); ++n)
        for (int i = 0; i < g->nodes[n].cls->n_in; ++i)
            g->nodes[n].in[i] = find_replacement(g, replaced_by, n_values, g->nodes[n].in[i]);
    attncl__free(replaced_by);
    return ATTNCL_OK;
}

void attncl__loop_reads_free(struct loop_reads *reads)
{
    attncl__free(reads->rows);
    reads->rows = NULL;
}

attncl_status attncl__loop_sums_begin(attncl_graph *g, attncl_value position, int32_t n_rows,
                                      int32_t first, struct loop_sums *sums)
{
    *sums = (struct loop_sums){
        .g = g, .position = position, .n_rows = n_rows, .first = first, .n_values = g->n_values};
    sums->stack_of = attncl__alloc_array((size_t)g->n_values, sizeof *sums->stack_of);
    REQUIRE(sums->stack_of, ATTNCL_ERR_NO_MEMORY, "sums of %d values", g->n_values);
    return ATTNCL_OK;
}

void attncl__loop_sums_free(struct loop_sums *sums)
{
    attncl__free(sums->stack_of);
    sums->stack_of = NULL;
}

static const struct node *find_producer(const attncl_graph *g, attncl_value x)
{
    const struct value *v = &g->values[x.id];
    return v->kind == VALUE_RESULT ? &g->nodes[v->node] : NULL;
}

// Returns the stack if x is this iteration's row of one, else 0.
static int find_stack_of_row(const struct loop_sums *sums, attncl_value x)
{
    const struct node *node = find_producer(sums->g, x);

    return node && node->cls == &attncl__op_loop_row_fwd && node->in[1] == sums->position.id &&
                   sums->g->values[node->in[0]].desc.dim[0] == sums->n_rows
               ? node->in[0]
               : 0;
}

attncl_value attncl__loop_sums_stack(struct loop_sums *sums, attncl_value x)
{
    const struct loop_stack_fwd_params params = {sums->n_rows};
    const bool known = x.id < sums->n_values;
    const int kept =
        known && sums->stack_of[x.id] ? sums->stack_of[x.id] : find_stack_of_row(sums, x);

    if (kept)
        return attncl__graph_handle(sums->g, kept);
    const attncl_value stack =
        attncl__graph_add(sums->g, &attncl__op_loop_stack_fwd, &params, IN(x, sums->position));
    if (known)
        sums->stack_of[x.id] = stack.id;
    return stack;
}

// The number of inputs that are rows; further ones are addends.
static int count_row_inputs(const struct op_class *cls)
{
    return cls->n_in < LOOP_SUM_MAX_IN ? cls->n_in : LOOP_SUM_MAX_IN;
}

// Returns the node that computes x if it sums over rows, so that one node can do it for the rows of
// all iterations; else NULL.
static const struct node *find_row_sum(const attncl_graph *g, attncl_value x)
{
    const struct node *node = find_producer(g, x);

    if (!node ||
        (node->cls != &attncl__op_linear_bwd_weight && node->cls != &attncl__op_linear_bwd_bias))
        return NULL;
    for (int i = 0; i < node->cls->n_in; ++i)
        if (g->values[node->in[i]].desc.rank == ATTNCL_MAX_RANK || // no axis is left for the rows
            (i >= LOOP_SUM_MAX_IN && node->in[i] != 0))            // an addend is no row
            return NULL;
    return node;
}

struct loop_sum attncl__loop_sums_add(struct loop_sums *sums, attncl_value x)
{
    const struct loop_sum_fwd_params params = {sums->first};
    struct loop_sum sum = {.cls = NULL};

    if (attncl__graph_failed(sums->g))
        return sum;
    const struct node *node = find_row_sum(sums->g, x);
    if (!node) {
        sum.sum =
            attncl__graph_add(sums->g, &attncl__op_loop_sum_fwd, &params, IN(x, sums->position));
        return sum;
    }
    sum.cls = node->cls;
    const int n_in = count_row_inputs(sum.cls);
    for (int i = 0; i < n_in; ++i) // before nodes are added, which moves this one
        sum.in[i] = attncl__graph_handle(sums->g, node->in[i]);
    for (int i = 0; i < n_in; ++i)
        sum.in[i] = attncl__loop_sums_stack(sums, sum.in[i]);
    return sum;
}

attncl_value attncl__loop_sum_finish(attncl_graph *g, const struct loop_sum *sum)
{
    return sum->cls ? attncl__graph_add(g, sum->cls, NULL, sum->in, count_row_inputs(sum->cls))
                    : sum->sum;
}
