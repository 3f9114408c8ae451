// SPDX-License-Identifier: MIT
//
// The position-wise feed-forward network:  layer2(dropout(act(layer1 x) [* gate x])) [+ residual]

#include "attncl/transformer.h"
#include "layer/layer.h"

attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                 attncl_activation activation, attncl_value x,
                                 attncl_value residual)
{
    attncl_ffn_params p = ATTNCL_FFN_PARAMS_INIT;
    attncl_linear_desc inner = ATTNCL_LINEAR_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_ffn_params, &p, params))
        return ATTNCL_NONE_VALUE;

    // The gate comes first, so that layer1's kernel can apply activation and gate as it stores.
    inner.activation = activation;
    if (attncl__given(p.gate_weight))
        inner.gate =
            attncl__layer_project(g, "linear_v", x, p.gate_weight, p.gate_bias, ATTNCL_NONE_VALUE);
    attncl_graph_push_scope(g, "layer1");
    attncl_value h = attncl_linear_fused(g, &inner, x, p.layer1_weight, p.layer1_bias);
    h = attncl_dropout(g, h, p.dropout);
    attncl_graph_pop_scope(g);

    return attncl__layer_project(g, "layer2", h, p.layer2_weight, p.layer2_bias, residual);
}
