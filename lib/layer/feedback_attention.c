// SPDX-License-Identifier: MIT
//
// Feedback attention, and a layer of a feedback transformer (Fan et al. 2020):
//
//     if there are memories: x += dropout(attn(LN(x), memories));   x += dropout(FF(LN(x)))

#include <inttypes.h>

#include "layer/feedback_internal.h"

// [S, B, C] -> [S, B, H, D]
static attncl_value project_heads(attncl_graph *g, const char *scope, attncl_value x,
                                  attncl_value weight, attncl_value bias, int64_t n_heads)
{
    struct tensor_desc d;
    const attncl_value y = attncl__layer_project(g, scope, x, weight, bias, ATTNCL_NONE_VALUE);
    if (!attncl__layer_axes(g, y, scope, 3, "[S, B, C]", &d) ||
        !attncl__layer_check_heads(g, n_heads, d.dim[2]))
        return ATTNCL_NONE_VALUE;
    const int64_t dim[4] = {d.dim[0], d.dim[1], n_heads, d.dim[2] / n_heads};
    return attncl_reshape(g, y, 4, dim);
}

// Attention of query [B, C] to memories, with the layer's key and value projections, if any, and its
// output projection.
static attncl_value attend(attncl_graph *g, const attncl_feedback_params *p, attncl_value query,
                           struct feedback_memories m, attncl_value residual,
                           attncl_value *weights_ret)
{
    const attncl_value none = ATTNCL_NONE_VALUE;
    attncl_linear_desc output = ATTNCL_LINEAR_DESC_INIT;
    output.gate = m.gate;
    output.residual = residual;

    if (m.n_heads > 0 && attncl__given(p->key_weight)) {
        m.keys = project_heads(g, "key", m.keys, p->key_weight, none, m.n_heads);
        m.values = project_heads(g, "value", m.values, p->value_weight, p->value_bias, m.n_heads);
    }
    const attncl_value q = attncl__layer_project(g, "query", query, p->query_weight, none, none);
    struct feedback_attention_fwd_params params = {
        .slot = m.slot, .adds = m.adds, .want_weights = weights_ret != NULL};
    attncl_dropout_desc dropout;
    if (!attncl__layer_dropout(g, p->dropout, &dropout, &params.dropout) ||
        !attncl__layer_check_absent(g, dropout.residual, "the residual of a dropout of weights") ||
        !attncl__layer_check_absent(g, dropout.position, "the position of a dropout of weights"))
        return none;
    const attncl_value y = attncl__graph_add(g, &attncl__op_feedback_attention_fwd, &params,
                                             IN(q, m.keys, m.values, p->key_pos_embeddings,
                                                p->query_pos_bias, p->key_pos_bias, m.position,
                                                m.gradients, dropout.p > 0 ? dropout.step : none));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    attncl_graph_push_scope(g, "output");
    const attncl_value x = attncl_linear_fused(g, &output, y, p->output_weight, p->output_bias);
    attncl_graph_pop_scope(g);
    return x;
}

attncl_value attncl_feedback_attention(attncl_graph *g, const attncl_feedback_params *params,
                                       int64_t n_heads, const attncl_attention_inputs *inputs,
                                       attncl_value *weights_ret)
{
    attncl_feedback_params p = ATTNCL_FEEDBACK_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!LAYER_STRUCT(g, attncl_feedback_params, &p, params) ||
        !LAYER_STRUCT(g, attncl_attention_inputs, &in, inputs) ||
        !attncl__layer_check_absent(g, in.mask, "mask") ||
        !attncl__layer_check_absent(g, in.valid_lens, "valid_lens") ||
        !attncl__layer_check_absent(g, in.bias, "bias"))
        return ATTNCL_NONE_VALUE;
    const struct feedback_memories m = {.keys = in.key, .values = in.value, .n_heads = n_heads};
    return attend(g, &p, in.query, m, in.residual, weights_ret);
}

// -- a layer

// dropout(y) + x
static attncl_value add_dropout(attncl_graph *g, attncl_dropout_desc desc, attncl_value y,
                                attncl_value x, attncl_value position)
{
    desc.batch_axis = 0;
    desc.position = position;
    desc.residual = x;
    return attncl_dropout(g, y, &desc);
}

// x + FF(LN(x)).  position: I32 [1], x's row in the dropout masks; null: x is the whole array.
static attncl_value feed_forward(attncl_graph *g, const struct feedback_layer *p, attncl_value x,
                                 attncl_value position)
{
    const attncl_feedback_layer_params *given = &p->params;
    attncl_dropout_desc hidden = p->drop_hidden;
    attncl_ffn_params ffn = p->ffn;
    const bool drops = p->drop_ffn.p > 0;
    hidden.batch_axis = 0;
    hidden.position = position;
    ffn.dropout = &hidden;
    const attncl_value z = attncl__layer_normalise(g, "norm_ff", x, given->norm_ffn_weight,
                                                   given->norm_ffn_bias, given->norm_eps);
    attncl_graph_push_scope(g, "feed_forward");
    const attncl_value y =
        attncl_feed_forward(g, &ffn, given->activation, z, drops ? ATTNCL_NONE_VALUE : x);
    attncl_graph_pop_scope(g);
    return drops ? add_dropout(g, p->drop_ffn, y, x, position) : y;
}

attncl_value attncl__feedback_add_layer(attncl_graph *g, const struct feedback_layer *p,
                                        attncl_value x, const struct feedback_memories *memories)
{
    const attncl_feedback_layer_params *given = &p->params;
    const bool drops = p->drop_attn.p > 0;
    attncl_feedback_params attn = p->attn;
    if (!memories)
        return feed_forward(g, p, x, ATTNCL_NONE_VALUE);
    const attncl_value z = attncl__layer_normalise(g, "norm_self_attn", x, given->norm_attn_weight,
                                                   given->norm_attn_bias, given->norm_eps);
    attn.dropout = &p->drop_weights;
    attncl_graph_push_scope(g, "attn");
    const attncl_value y = attend(g, &attn, z, *memories, drops ? ATTNCL_NONE_VALUE : x, NULL);
    x = drops ? add_dropout(g, p->drop_attn, y, x, memories->position) : y;
    attncl_graph_pop_scope(g);
    return feed_forward(g, p, x, memories->position);
}

// Copies a dropout that must not set position and residual, which the layer sets.
static bool read_dropout(attncl_graph *g, const attncl_dropout_desc *given,
                         attncl_dropout_desc *ret)
{
    struct dropout_fwd_params params;
    return attncl__layer_dropout(g, given, ret, &params) &&
           attncl__layer_check_absent(g, ret->residual, "the residual of a layer's dropout") &&
           attncl__layer_check_absent(g, ret->position, "the position of a layer's dropout");
}

bool attncl__feedback_layer_read(attncl_graph *g, const attncl_feedback_layer_params *params,
                                 struct feedback_layer *ret)
{
    *ret = (struct feedback_layer){.params = ATTNCL_FEEDBACK_LAYER_PARAMS_INIT};
    if (!LAYER_STRUCT(g, attncl_feedback_layer_params, &ret->params, params) ||
        !LAYER_STRUCT(g, attncl_feedback_params, &ret->attn, ret->params.attn) ||
        !LAYER_STRUCT(g, attncl_ffn_params, &ret->ffn, ret->params.ffn) ||
        !read_dropout(g, ret->attn.dropout, &ret->drop_weights) ||
        !read_dropout(g, ret->params.attn_dropout, &ret->drop_attn) ||
        !read_dropout(g, ret->ffn.dropout, &ret->drop_hidden) ||
        !read_dropout(g, ret->params.ffn_dropout, &ret->drop_ffn))
        return false;
    ret->attn.dropout = NULL;
    ret->ffn.dropout = NULL;
    return true;
}

attncl_value attncl_feedback_layer(attncl_graph *g, const attncl_feedback_layer_params *params,
                                   int64_t n_heads, attncl_value x, attncl_value memory)
{
    const struct feedback_memories m = {.keys = memory, .values = memory, .n_heads = n_heads};
    struct feedback_layer p;
    struct tensor_desc d;
    if (!attncl__feedback_layer_read(g, params, &p))
        return ATTNCL_NONE_VALUE;
    const bool has_memory =
        attncl__given(memory) && attncl__layer_shape(g, memory, "memory", &d) && d.dim[0] != 0;
    return attncl__feedback_add_layer(g, &p, x, has_memory ? &m : NULL);
}
