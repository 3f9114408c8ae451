// SPDX-License-Identifier: MIT
//
// The position-wise feed-forward network:  layer2(act(layer1 x) [* gate x]) [+ residual]

#include "attncl/transformer.h"
#include "layer/layer.h"

attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                 attncl_activation activation, attncl_value x,
                                 attncl_value residual)
{
    attncl_linear_desc inner = ATTNCL_LINEAR_DESC_INIT, outer = ATTNCL_LINEAR_DESC_INIT;

    // The gate comes first, so that layer1's kernel can apply activation and gate as it stores.
    inner.activation = activation;
    if (attncl__given(params->gate_weight)) {
        attncl_graph_push_scope(g, "linear_v");
        inner.gate = attncl_linear(g, x, params->gate_weight, params->gate_bias);
        attncl_graph_pop_scope(g);
    }
    attncl_graph_push_scope(g, "layer1");
    const attncl_value h =
        attncl_linear_fused(g, &inner, x, params->layer1_weight, params->layer1_bias);
    attncl_graph_pop_scope(g);

    outer.residual = residual;
    attncl_graph_push_scope(g, "layer2");
    const attncl_value y =
        attncl_linear_fused(g, &outer, h, params->layer2_weight, params->layer2_bias);
    attncl_graph_pop_scope(g);
    return y;
}
