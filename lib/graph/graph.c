// SPDX-License-Identifier: MIT
//
// A graph's creation and destruction, the first failure of its builders, and the scopes that say where
// it happened.

#include <stdarg.h>
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
    if (!g->scope.failed)
        attncl__graph_add_value(g, (struct value){.kind = VALUE_NONE});
    if (g->scope.failed || attncl__graph_failed(g)) {
        attncl_graph_destroy(g);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "graph");
    }
    *graph_ret = g;
    return ATTNCL_OK;
}

attncl_status attncl_graph_create(attncl_context *context, attncl_graph **graph_ret)
{
    REQUIRE(context && graph_ret, ATTNCL_ERR_ARGUMENT, "context or graph_ret is NULL");
    TRY(attncl__context_usable(context));

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

bool attncl__graph_failed(const attncl_graph *g)
{
    return !g || g->status != ATTNCL_OK;
}

attncl_context *attncl__graph_context(const attncl_graph *g)
{
    return g->ctx;
}

attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status)
{
    const char *const scope = g->scope_override ? g->scope_override : g->scope.data;
    g->status = *scope ? attncl__prefix_failure(status, "%s", scope) : status;
    snprintf(g->message, sizeof g->message, "%s", attncl_last_error());
    return ATTNCL_NONE_VALUE;
}

attncl_value attncl__graph_fail(attncl_graph *g, attncl_status status, const char *file, int line,
                                const char *fmt, ...)
{
    char text[400];
    va_list args;

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    attncl__fail(status, file, line, "%s", text);
    return attncl__graph_keep_failure(g, status);
}

attncl_status attncl_graph_status(const attncl_graph *g)
{
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    return g->status == ATTNCL_OK ? ATTNCL_OK : FAIL(g->status, "%s", g->message);
}

bool attncl__graph_building(attncl_graph *g)
{
    if (!attncl__graph_failed(g) && g->program)
        GRAPH_FAIL(g, ATTNCL_ERR_STATE, "the graph is compiled and takes no more nodes");
    return !attncl__graph_failed(g);
}

void attncl__graph_override_scope(attncl_graph *g, const char *scope)
{
    g->scope_override = scope;
}

void attncl_graph_push_scope(attncl_graph *g, const char *name)
{
    if (attncl__graph_failed(g) || !name)
        return;
    if (g->scope_depth == MAX_SCOPE_DEPTH) {
        GRAPH_FAIL(g, ATTNCL_ERR_STATE, "scope %s is nested deeper than %d", name, MAX_SCOPE_DEPTH);
        return;
    }
    g->scope_marks[g->scope_depth++] = g->scope.used;
    attncl__strbuf_add(&g->scope, "%s%s", g->scope.used ? "." : "", name);
    if (g->scope.failed)
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "scope %s", name);
}

void attncl_graph_pop_scope(attncl_graph *g)
{
    if (attncl__graph_failed(g) || g->scope_depth == 0)
        return;
    g->scope.used = g->scope_marks[--g->scope_depth];
    g->scope.data[g->scope.used] = '\0';
}
