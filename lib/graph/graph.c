// SPDX-License-Identifier: MIT
//
// A graph's creation and destruction.

#include <stdatomic.h>

#include "base/alloc.h"
#include "graph/nodes.h"

static atomic_uint n_created;

attncl_status attncl__graph_create_unbound(attncl_graph **graph_ret)
{
    attncl_graph *g = attncl__alloc_zero(sizeof *g);
    REQUIRE(g, ATTNCL_ERR_NO_MEMORY, "graph");
    do
        g->serial = atomic_fetch_add(&n_created, 1) + 1;
    while (g->serial == 0); // after 2^32 graphs
    attncl__strbuf_add_bytes(&g->scope, "", 0);
    g->descs = attncl__alloc_array(attncl__op_max_arity(), sizeof *g->descs);
    if (g->descs && !g->scope.failed)
        attncl__graph_add_value(g, (struct value){.kind = VALUE_NONE});
    if (!g->descs || g->scope.failed || attncl__graph_failed(g)) {
        attncl_graph_destroy(g);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "graph");
    }
    *graph_ret = g;
    return ATTNCL_OK;
}

attncl_status attncl_graph_create(attncl_context *context, attncl_graph **graph_ret)
{
    REQUIRE(context && graph_ret, ATTNCL_ERR_ARGUMENT, "context or graph_ret is NULL");
    TRY(attncl__context_check_usable(context));

    attncl_graph *g;
    TRY(attncl__graph_create_unbound(&g));
    g->ctx = context;
    const char *guard = attncl__context_env(context, ENV_GUARD);
    g->canaries = guard && strcmp(guard, "0") != 0;
    attncl__context_add_child(context, "graph");
    *graph_ret = g;
    return ATTNCL_OK;
}

static void free_names(struct named_values *values)
{
    for (int i = 0; i < values->n; ++i)
        attncl__free(values->list[i].name);
    attncl__free(values->list);
    attncl__name_table_free(&values->names);
}

void attncl_graph_destroy(attncl_graph *g)
{
    if (!g)
        return;
    if (g->program) {
        attncl__queue_drain(g->ctx);
        g->program_free(g->program);
    }
    for (int i = 0; i < g->n_values; ++i) {
        attncl__free(g->values[i].name);
        if (g->values[i].owns_tensor)
            attncl_tensor_destroy(g->values[i].tensor);
    }
    for (int i = 0; i < g->n_nodes; ++i)
        attncl__free(g->nodes[i].params);
    for (size_t i = 0; i < g->n_node_scopes; ++i)
        attncl__free(g->node_scopes[i]);
    attncl__free(g->node_scopes);
    free_names(&g->inputs);
    free_names(&g->outputs);
    attncl__free(g->values);
    attncl__free(g->nodes);
    attncl__free(g->loops);
    attncl__free(g->descs);
    for (int i = 0; i < g->n_regions; ++i)
        attncl__free(g->regions[i].grad);
    attncl__free(g->regions);
    attncl__strbuf_free(&g->scope);
    if (g->ctx)
        attncl__context_remove_child(g->ctx);
    attncl__free(g);
}
