// SPDX-License-Identifier: MIT
//
// Lowering: a copy of a graph with producer and consumer links.  Views that an op cannot read are
// copied when the graph is built, so that nodes are lowered one by one.

#include <stdlib.h>

#include "compile/lowered.h"

static void lower_value(const attncl_graph *g, struct lowered *p, int v)
{
    const struct value *origin = &g->values[v];

    p->values[v] = (struct lowered_value){
        .origin = origin,
        .desc = &origin->desc,
        .base = origin->base,
        .producer = origin->kind == VALUE_RESULT ? origin->node : -1,
        .is_output = origin->is_output,
    };
}

static attncl_status lower_node(const attncl_graph *g, struct lowered *p, int n)
{
    const struct node *origin = &g->nodes[n];
    struct lowered_node *node = &p->nodes[n];

    TRY(attncl__lowered_replace(p, n, origin->cls, origin->params, origin->in));
    memcpy(node->outputs, origin->out, (size_t)origin->cls->n_out * sizeof *node->outputs);
    node->scope = origin->scope;
    node->loop = origin->loop;
    node->save_for_backward = origin->save_for_backward;
    return ATTNCL_OK;
}

// The most inputs and outputs that an op has.
static size_t max_arity(void)
{
    size_t max = 0;

    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i) {
        const size_t arity = (size_t)(attncl__op_table[i]->n_in + attncl__op_table[i]->n_out);
        max = arity > max ? arity : max;
    }
    return max;
}

attncl_status attncl__lower(const attncl_graph *g, const struct fit *fit, struct lowered *p)
{
    *p = (struct lowered){
        .fit = fit,
        .canaries = g->canaries,
        .n_values = g->n_values,
        .n_nodes = g->n_nodes,
        .loops = g->loops,
        .inputs = g->inputs,
        .n_inputs = g->n_inputs,
        .outputs = g->outputs,
        .n_outputs = g->n_outputs,
    };
    struct device_caps *caps = attncl__lowered_alloc(p, sizeof *caps);
    REQUIRE(caps, ATTNCL_ERR_NO_MEMORY, "graph of %d nodes", g->n_nodes);
    *caps = g->ctx->caps;
    if (fit)
        attncl__caps_set_precision(caps, fit->precision);
    p->caps = caps;
    const char *queues = attncl__context_env(g->ctx, ENV_QUEUES);
    p->n_queues = fit && fit->n_queues ? fit->n_queues : queues ? atoi(queues) : 1;
    REQUIRE(p->n_queues >= 1 && p->n_queues <= MAX_QUEUES, ATTNCL_ERR_ARGUMENT,
            "ATTNCL_QUEUES is %.20s, it can be 1 to %d", queues, MAX_QUEUES);
    p->values = attncl__lowered_alloc(p, (size_t)g->n_values * sizeof *p->values);
    p->nodes = attncl__lowered_alloc(p, (size_t)g->n_nodes * sizeof *p->nodes);
    p->descs = attncl__lowered_alloc(p, max_arity() * sizeof *p->descs);
    p->spans = attncl__lowered_alloc(p, max_arity() * sizeof *p->spans);
    REQUIRE(p->values && p->nodes && p->descs && p->spans, ATTNCL_ERR_NO_MEMORY,
            "graph of %d nodes", g->n_nodes);

    for (int v = 0; v < g->n_values; ++v)
        lower_value(g, p, v);
    for (int n = 0; n < g->n_nodes; ++n)
        TRY(lower_node(g, p, n));
    return ATTNCL_OK;
}
