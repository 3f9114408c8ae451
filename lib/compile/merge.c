// SPDX-License-Identifier: MIT
//
// Two nodes as one: where every reader of a node's result can do that node's work itself, each
// does, and the node is dead.  Work done several times over is cheaper than a launch (struct
// op_merge).

#include "base/alloc.h"
#include "graph/internal.h"

// Inputs of the merged node: `reader`'s, with the first of `before` for its result, then the rest.
static void merged_inputs(const struct node *reader, const struct node *before, int in[OP_MAX_IN])
{
    const struct op_merge *merge = reader->cls->merge;
    int n = reader->cls->n_in;

    memset(in, 0, OP_MAX_IN * sizeof in[0]);
    memcpy(in, reader->in, (size_t)n * sizeof in[0]);
    in[merge->input] = before->in[0];
    for (int i = 1; i < before->cls->n_in; ++i)
        in[n++] = before->in[i];
    assert(n == merge->into->n_in);
}

bool attncl__graph_overwrites(const attncl_graph *g, int n, const struct node *before)
{
    const struct node *node = &g->nodes[n];

    for (int i = 0; node->live && node->cls->state && i < node->cls->n_in; ++i)
        for (int j = 0; (node->cls->state >> i & 1) && j < before->cls->n_in; ++j)
            if (g->values[node->in[i]].base == g->values[before->in[j]].base)
                return true;
    return false;
}

// Whether the reader takes the result itself, once, where the op says, and the op finds it worth
// it.
static bool takes_over(const attncl_graph *g, const struct node *reader, const struct node *before)
{
    const struct op_merge *merge = reader->cls->merge;
    struct op_sig sig = {.caps = &g->ctx->caps, .params = reader->params};
    int in[OP_MAX_IN];

    if (!merge || merge->before != before->cls || reader->save_for_backward ||
        reader->in[merge->input] != before->out[0])
        return false;
    for (int i = 0; i < reader->cls->n_in; ++i)
        if (i != merge->input && g->values[reader->in[i]].base == before->out[0])
            return false;
    merged_inputs(reader, before, in);
    sig.n_in = merge->into->n_in;
    attncl__graph_sig_inputs(g, in, &sig);
    return merge->suits(&sig);
}

int attncl__graph_count_reads(const attncl_graph *g, const struct node *node, int value)
{
    int count = 0;

    for (int i = 0; node->live && i < node->cls->n_in; ++i)
        count += g->values[node->in[i]].base == value;
    return count;
}

// Whether every reader of node n's result takes it over, before anybody writes to what n reads.
static bool all_take_over(const attncl_graph *g, int n)
{
    const struct node *before = &g->nodes[n];
    const struct loop *loop = attncl__graph_loop_of(g, n);
    bool overwritten = false;

    for (int m = n + 1; m < g->n_nodes; ++m) {
        if (attncl__graph_count_reads(g, &g->nodes[m], before->out[0]) &&
            (overwritten || attncl__graph_loop_of(g, m) != loop ||
             !takes_over(g, &g->nodes[m], before)))
            return false;
        overwritten |= attncl__graph_overwrites(g, m, before);
    }
    return true;
}

static attncl_status merge_into(attncl_graph *g, int n, int reader_of_it)
{
    const struct node *before = &g->nodes[n], *reader = &g->nodes[reader_of_it];
    const struct op_merge *merge = reader->cls->merge;
    const size_t own = reader->cls->params_bytes, more = before->cls->params_bytes;
    int in[OP_MAX_IN];

    TRY(attncl__graph_keep_as_built(g, reader_of_it));
    char *params = attncl__alloc_zero(own + more);
    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of %s", merge->into->name);
    assert(merge->into->params_bytes == own + more);
    memcpy(params, reader->params, own);
    memcpy(params + own, before->params, more);
    merged_inputs(reader, before, in);
    attncl__graph_become(g, reader_of_it, merge->into, params, in);
    return ATTNCL_OK;
}

// Whether any op takes over what this class does.
static bool is_taken_over(const struct op_class *cls)
{
    for (size_t i = 0; i < attncl__n_ops; ++i)
        if (attncl__op_table[i]->merge && attncl__op_table[i]->merge->before == cls)
            return true;
    return false;
}

attncl_status attncl__graph_merge(attncl_graph *g)
{
    for (int n = 0; n < g->n_nodes; ++n) {
        struct node *node = &g->nodes[n];
        const int result = node->out[0];
        if (!node->live || !is_taken_over(node->cls) || g->values[result].is_output ||
            !all_take_over(g, n))
            continue;
        for (int m = n + 1; m < g->n_nodes; ++m)
            if (attncl__graph_count_reads(g, &g->nodes[m], result))
                TRY(merge_into(g, n, m));
        node->live = false;
    }
    return ATTNCL_OK;
}
