// SPDX-License-Identifier: MIT
//
// A linear map of a layer, under the name of its parameters.

#include "layer/layer.h"

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
