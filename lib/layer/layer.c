// SPDX-License-Identifier: MIT
//
// Checks of inputs and projections shared by several layers.

#include "layer/layer.h"
#include "attncl/ops.h"

bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name, struct tensor_desc *ret)
{
    if (attncl__graph_failed(g))
        return false;
    if (attncl__graph_is_foreign(g, v)) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s is a value of another graph", name);
        return false;
    }
    const struct tensor_desc *d = attncl__graph_desc(g, v);
    if (!d || v.id == 0) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s is missing", name);
        return false;
    }
    *ret = *d;
    return true;
}

bool attncl__layer_axes(attncl_graph *g, attncl_value v, const char *name, int rank,
                        const char *axes, struct tensor_desc *ret)
{
    if (!attncl__layer_shape(g, v, name, ret))
        return false;
    if (ret->rank != rank) {
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "%s has shape %s, expected %s", name, SHAPE(ret), axes);
        return false;
    }
    return true;
}

attncl_value attncl__layer_project(attncl_graph *g, const char *scope, attncl_value x,
                                   attncl_value weight, attncl_value bias, attncl_value residual)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    desc.residual = residual;

    attncl_graph_push_scope(g, scope);
    const attncl_value y = attncl_linear_fused(g, &desc, x, weight, bias);
    attncl_graph_pop_scope(g);
    return y;
}
