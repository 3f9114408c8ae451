// SPDX-License-Identifier: MIT
//
// The first failure of a graph's builders, and the scopes that say where it happened.

#include <stdarg.h>

#include "base/alloc.h"
#include "graph/nodes.h"

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
