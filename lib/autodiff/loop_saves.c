// SPDX-License-Identifier: MIT
// Keeps the results of a loop's iterations, a row each, for the loop that differentiates them.

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
