// SPDX-License-Identifier: MIT
//
// What planning makes of nodes (merge.c, rewrite.c) is taken back when nodes are added: gradients
// are those of the ops apart.

#include "base/alloc.h"
#include "graph/internal.h"

// A node before planning changed it, and its first result's shape.
struct as_built {
    struct node node;
    struct tensor_desc result;
};

attncl_status attncl__graph_keep_as_built(attncl_graph *g, int n)
{
    struct node *node = &g->nodes[n];
    if (node->as_built)
        return ATTNCL_OK;

    struct as_built *old = attncl__alloc_zero(sizeof *old);
    REQUIRE(old, ATTNCL_ERR_NO_MEMORY, "node of %s", node->cls->name);
    *old = (struct as_built){*node, g->values[node->out[0]].desc};
    node->as_built = old;
    g->changed = true;
    return ATTNCL_OK;
}

void attncl__graph_become(attncl_graph *g, int n, const struct op_class *cls, void *params,
                          const int in[OP_MAX_IN])
{
    struct node *node = &g->nodes[n];

    assert(node->as_built);
    if (node->params != node->as_built->node.params)
        attncl__free(node->params);
    node->cls = cls;
    node->params = params;
    memcpy(node->in, in, sizeof node->in);
}

void attncl__graph_restore(attncl_graph *g)
{
    if (!g->changed)
        return;
    for (int n = 0; n < g->n_nodes; ++n) {
        struct node *node = &g->nodes[n];
        struct as_built *old = node->as_built;
        if (!old)
            continue;
        if (node->params != old->node.params)
            attncl__free(node->params);
        *node = old->node;
        g->values[node->out[0]].desc = old->result;
        attncl__free(old);
    }
    for (int n = 0; n < g->n_nodes; ++n)
        for (int i = 0; i < g->nodes[n].cls->n_out; ++i)
            if (g->nodes[n].out[i])
                g->values[g->nodes[n].out[i]].node = n;
    g->changed = false;
}
