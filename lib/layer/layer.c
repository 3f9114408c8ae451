// SPDX-License-Identifier: MIT
//
// Checks that several layers make of their inputs.

#include "layer/layer.h"

bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name, struct tensor_desc *ret)
{
    if (attncl__graph_failed(g))
        return false;
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
