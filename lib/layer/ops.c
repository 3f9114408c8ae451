// SPDX-License-Identifier: MIT
//
// Builders of single operations, which add one node, except for a softmax over an inner axis and a
// dropout with p = 0; and of the feed-forward network.

#include "attncl/transformer.h"
#include "layer/layer.h"

attncl_value attncl_softmax(attncl_graph *g, attncl_value x, int axis)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    if (axis < -d.rank || axis >= d.rank)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "axis %d of a value of rank %d", axis, d.rank);
    if (axis < 0)
        axis += d.rank;
    if (axis == d.rank - 1)
        return attncl__graph_add(g, &attncl__op_softmax_fwd, NULL, IN(x));

    // The op works along the last axis: swap the axes before and after.
    int order[ATTNCL_MAX_RANK];
    for (int i = 0; i < d.rank; ++i)
        order[i] = i;
    order[axis] = d.rank - 1;
    order[d.rank - 1] = axis;
    attncl_value y = attncl_permute(g, x, order);
    y = attncl__graph_add(g, &attncl__op_softmax_fwd, NULL, IN(y));
    return attncl_permute(g, y, order);
}

attncl_value attncl_masked_softmax(attncl_graph *g, attncl_value x, attncl_value valid_lens)
{
    return attncl__graph_add(g, &attncl__op_masked_softmax_fwd, NULL, IN(x, valid_lens));
}

attncl_value attncl_layer_norm(attncl_graph *g, attncl_value x, attncl_value weight,
                               attncl_value bias, float eps)
{
    const struct layer_norm_fwd_params params = {eps};
    return attncl__graph_add(g, &attncl__op_layer_norm_fwd, &params, IN(x, weight, bias));
}

attncl_value attncl_rms_norm(attncl_graph *g, attncl_value x, attncl_value weight, float eps)
{
    const struct rms_norm_fwd_params params = {eps};
    return attncl__graph_add(g, &attncl__op_rms_norm_fwd, &params, IN(x, weight));
}

attncl_value attncl_activate(attncl_graph *g, attncl_value x, attncl_activation kind)
{
    const struct activation_fwd_params params = {(int32_t)kind};
    return attncl__graph_add(g, &attncl__op_activation_fwd, &params, IN(x));
}

attncl_value attncl_bias_activate(attncl_graph *g, attncl_value x, attncl_value bias,
                                  attncl_activation kind)
{
    const struct bias_activation_fwd_params params = {(int32_t)kind};
    return attncl__graph_add(g, &attncl__op_bias_activation_fwd, &params, IN(x, bias));
}

attncl_value attncl_add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

attncl_value attncl__softcap(attncl_graph *g, attncl_value x, float cap)
{
    const struct softcap_fwd_params params = {cap};
    return attncl__graph_add(g, &attncl__op_softcap_fwd, &params, IN(x));
}

attncl_value attncl_mul(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_mul_fwd, NULL, IN(a, b));
}

attncl_value attncl_linear_fused(attncl_graph *g, const attncl_linear_desc *desc, attncl_value x,
                                 attncl_value weight, attncl_value bias)
{
    attncl_linear_desc d = ATTNCL_LINEAR_DESC_INIT;
    if (desc && !LAYER_STRUCT(g, attncl_linear_desc, &d, desc))
        return ATTNCL_NONE_VALUE;

    const struct linear_fwd_params params = {(int32_t)d.activation};
    return attncl__graph_add(g, &attncl__op_linear_fwd, &params,
                             IN(x, weight, bias, d.gate, d.residual));
}

attncl_value attncl_linear(attncl_graph *g, attncl_value x, attncl_value weight, attncl_value bias)
{
    return attncl_linear_fused(g, NULL, x, weight, bias);
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

attncl_value attncl__layer_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                     attncl_value weight, attncl_value bias, double eps)
{
    attncl_graph_push_scope(g, scope);
    const attncl_value y = attncl_layer_norm(g, x, weight, bias, eps == 0 ? 1e-5f : (float)eps);
    attncl_graph_pop_scope(g);
    return y;
}

attncl_value attncl_bmm(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_bmm_fwd, NULL, IN(a, b));
}

attncl_value attncl__embedding_padded(attncl_graph *g, attncl_value tokens, attncl_value weight,
                                      float scale, int64_t padding)
{
    const struct embedding_fwd_params params = {scale, (int32_t)(padding + 1)};
    return attncl__graph_add(g, &attncl__op_embedding_fwd, &params, IN(tokens, weight));
}

attncl_value attncl_embedding(attncl_graph *g, attncl_value tokens, attncl_value weight,
                              float scale)
{
    return attncl__embedding_padded(g, tokens, weight, scale, -1);
}

attncl_value attncl_cross_entropy(attncl_graph *g, attncl_value logits, attncl_value targets,
                                  const attncl_cross_entropy_desc *desc)
{
    attncl_cross_entropy_desc d = ATTNCL_CROSS_ENTROPY_DESC_INIT;
    if (desc && !LAYER_STRUCT(g, attncl_cross_entropy_desc, &d, desc))
        return ATTNCL_NONE_VALUE;
    const struct cross_entropy_fwd_params params = {(int32_t)d.reduction, d.pad, d.label_smoothing};
    return attncl__graph_add(g, &attncl__op_cross_entropy_fwd, &params, IN(logits, targets));
}

attncl_value attncl_argmax(attncl_graph *g, attncl_value x)
{
    return attncl__graph_add(g, &attncl__op_argmax_fwd, NULL, IN(x));
}

bool attncl__layer_dropout(attncl_graph *g, const attncl_dropout_desc *given,
                           attncl_dropout_desc *ret, struct dropout_fwd_params *params_ret)
{
    *ret = (attncl_dropout_desc)ATTNCL_DROPOUT_DESC_INIT;
    *params_ret = (struct dropout_fwd_params){0};
    if (given && !LAYER_STRUCT(g, attncl_dropout_desc, ret, given))
        return false;
    *params_ret = (struct dropout_fwd_params){
        ret->p, ret->seed, ret->site, ret->batch_axis, ret->batch_begin, ret->batch_total,
    };
    return !attncl__graph_failed(g);
}

attncl_value attncl_dropout(attncl_graph *g, attncl_value x, const attncl_dropout_desc *desc)
{
    struct dropout_fwd_params params;
    attncl_dropout_desc d;
    if (!attncl__layer_dropout(g, desc, &d, &params))
        return ATTNCL_NONE_VALUE;
    if (d.p == 0)
        return attncl__given(d.residual) ? attncl_add(g, x, d.residual) : x;
    return attncl__graph_add(g, &attncl__op_dropout_fwd, &params,
                             IN(x, d.step, d.position, d.residual));
}

// layer2(dropout(act(layer1 x) [* gate x])) [+ residual]
attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                 attncl_activation activation, attncl_value x,
                                 attncl_value residual)
{
    attncl_ffn_params p = ATTNCL_FFN_PARAMS_INIT;
    attncl_linear_desc inner = ATTNCL_LINEAR_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_ffn_params, &p, params))
        return ATTNCL_NONE_VALUE;

    // The gate comes first, so that layer1's kernel can apply it with the activation.
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

attncl_value attncl_attention_pooling(attncl_graph *g, attncl_pooling_kernel kind, float sigma,
                                      attncl_value x_train, attncl_value y_train,
                                      attncl_value x_val, attncl_value *weights_ret)
{
    const struct attention_pooling_fwd_params params = {(int32_t)kind, sigma, weights_ret != NULL};
    const attncl_value y = attncl__graph_add(g, &attncl__op_attention_pooling_fwd, &params,
                                             IN(x_train, y_train, x_val));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    return y;
}
