// SPDX-License-Identifier: MIT
//
// The table of values, and their handles.

#include "graph/internal.h"

int attncl__graph_add_value(attncl_graph *g, struct value v)
{
    struct value *values =
        attncl__grow_list(g->values, (size_t)g->n_values, &g->values_capacity, sizeof *values);
    if (!values) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "graph value %d", g->n_values);
        return 0;
    }
    g->values = values;
    g->values[g->n_values] = v;
    if (v.kind != VALUE_VIEW)
        g->values[g->n_values].base = g->n_values;
    return g->n_values++;
}

const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v)
{
    const bool is_own = g && v.graph == g->serial && v.id > 0 && v.id < g->n_values;
    return is_own ? &g->values[v.id] : NULL;
}

attncl_value attncl__graph_handle(const attncl_graph *g, int id)
{
    return id ? (attncl_value){id, g->serial} : ATTNCL_NONE_VALUE;
}

bool attncl__graph_is_foreign(const attncl_graph *g, attncl_value v)
{
    return v.id != 0 && v.graph != g->serial;
}

const struct tensor_desc *attncl__graph_desc(const attncl_graph *g, attncl_value v)
{
    const struct value *value = attncl__graph_value(g, v);
    return value ? &value->desc : NULL;
}

static attncl_shape shape_of(const struct tensor_desc *d)
{
    attncl_shape shape = {.dtype = d->dtype, .rank = d->rank};
    memcpy(shape.dim, d->dim, sizeof shape.dim);
    return shape;
}

attncl_shape attncl_graph_shape(const attncl_graph *g, attncl_value value)
{
    const struct tensor_desc *d = attncl__graph_desc(g, value);
    return d ? shape_of(d) : (attncl_shape){.rank = -1};
}
