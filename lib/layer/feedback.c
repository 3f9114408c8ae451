// SPDX-License-Identifier: MIT
//
// Feedback transformer (Fan et al. 2020):
//
//     x^0 = input_t;   x^l = layer_l(x^(l-1), memories of the steps before t)
//     memory_t = sum over l = 0 .. L of softmax(weights)_l x^l;   result_t = LN(x^L)
//     layer: x += attn(LN(x), memories) unless t = 0;   x += FF(LN(x))

#include <inttypes.h>

#include "layer/feedback_internal.h"
#include "layer/feedback_stack.h"

static const float norm_eps = 1e-5f;

// So many steps are worth a copy of the key and value maps.
enum { STACK_STEPS = 4 };

attncl_value attncl__feedback_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                        attncl_value weight, attncl_value bias)
{
    attncl_graph_push_scope(g, scope);
    const attncl_value y = attncl_layer_norm(g, x, weight, bias, norm_eps);
    attncl_graph_pop_scope(g);
    return y;
}

attncl_value attncl__feedback_attend(attncl_graph *g, const attncl_feedback_params *p,
                                     attncl_value query, const struct feedback_memories *m,
                                     attncl_value residual, attncl_value *weights_ret)
{
    attncl_linear_desc output = ATTNCL_LINEAR_DESC_INIT;
    output.gate = m->gate;
    output.residual = residual;

    const attncl_value none = ATTNCL_NONE_VALUE;
    const attncl_value q = attncl__layer_project(g, "query", query, p->query_weight, none, none);
    const struct feedback_attention_fwd_params params = {m->slot, m->adds, weights_ret != NULL};
    const attncl_value y =
        attncl__graph_add(g, &attncl__op_feedback_attention_fwd, &params,
                          IN(q, m->keys, m->values, p->key_pos_embeddings, p->query_pos_bias,
                             p->key_pos_bias, m->position, m->gradients));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    attncl_graph_push_scope(g, "output");
    const attncl_value x = attncl_linear_fused(g, &output, y, p->output_weight, p->output_bias);
    attncl_graph_pop_scope(g);
    return x;
}

bool attncl__feedback_check_heads(attncl_graph *g, int64_t n_heads, int64_t width)
{
    if (n_heads < 1 || n_heads > width || width % n_heads != 0)
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "C = %" PRId64 " cannot be cut into H = %" PRId64 " heads",
                   width, n_heads);
    return !attncl__graph_failed(g);
}

// [S, B, C] -> [S, B, H, D]
static attncl_value project_heads(attncl_graph *g, const char *scope, attncl_value x,
                                  attncl_value weight, attncl_value bias, int64_t n_heads)
{
    struct tensor_desc d;
    const attncl_value y = attncl__layer_project(g, scope, x, weight, bias, ATTNCL_NONE_VALUE);
    if (!attncl__layer_axes(g, y, scope, 3, "[S, B, C]", &d) ||
        !attncl__feedback_check_heads(g, n_heads, d.dim[2]))
        return ATTNCL_NONE_VALUE;
    const int64_t dim[4] = {d.dim[0], d.dim[1], n_heads, d.dim[2] / n_heads};
    return attncl_reshape(g, y, 4, dim);
}

attncl_value attncl_feedback_attention(attncl_graph *g, const attncl_feedback_params *params,
                                       int64_t n_heads, attncl_value query, attncl_value key,
                                       attncl_value value, attncl_value residual,
                                       attncl_value *weights_ret)
{
    const attncl_feedback_params *p = params;
    struct feedback_memories m = {.keys = key, .values = value};
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (attncl__given(p->key_weight)) {
        m.keys = project_heads(g, "key", key, p->key_weight, ATTNCL_NONE_VALUE, n_heads);
        m.values = project_heads(g, "value", value, p->value_weight, p->value_bias, n_heads);
    }
    return attncl__feedback_attend(g, p, query, &m, residual, weights_ret);
}

attncl_value attncl__feedback_ffn(attncl_graph *g, const attncl_feedback_layer_params *p,
                                  attncl_value x)
{
    const attncl_value z =
        attncl__feedback_normalise(g, "norm_ff", x, p->norm_ffn_weight, p->norm_ffn_bias);
    attncl_graph_push_scope(g, "feed_forward");
    const attncl_value y = attncl_feed_forward(g, &p->ffn, p->activation, z, x);
    attncl_graph_pop_scope(g);
    return y;
}

attncl_value attncl_feedback_layer(attncl_graph *g, const attncl_feedback_layer_params *params,
                                   int64_t n_heads, attncl_value x, attncl_value memory)
{
    const attncl_feedback_layer_params *p = params;
    struct tensor_desc d;
    if (attncl__given(memory) && attncl__layer_shape(g, memory, "memory", &d) && d.dim[0] != 0) {
        const attncl_value z = attncl__feedback_normalise(g, "norm_self_attn", x,
                                                          p->norm_attn_weight, p->norm_attn_bias);
        attncl_graph_push_scope(g, "attn");
        x = attncl_feedback_attention(g, &p->attn, n_heads, z, memory, memory, x, NULL);
        attncl_graph_pop_scope(g);
    }
    return attncl__feedback_ffn(g, p, x);
}

attncl_value attncl_feedback_transformer_step(attncl_graph *g,
                                              const attncl_feedback_transformer_params *params,
                                              int64_t limit, attncl_value x, attncl_value position,
                                              attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct feedback_steps s;
    attncl_value memory;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, x, "x", 2, "[B, C]", &d) ||
        !attncl__feedback_begin(g, params, d.dim[0], d.dim[1], limit, &s))
        return ATTNCL_NONE_VALUE;
    x = attncl__feedback_one_step(g, &s, x, position, &memory);
    attncl__feedback_keep(g, &s, memory);
    if (memory_ret)
        *memory_ret = memory;
    return attncl__feedback_normalise(g, "norm", x, params->norm_weight, params->norm_bias);
}

attncl_value attncl_feedback_transformer(attncl_graph *g,
                                         const attncl_feedback_transformer_params *params,
                                         attncl_value x, attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct feedback_steps s;
    attncl_value memory;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, x, "x", 3, "[T, B, C]", &d))
        return ATTNCL_NONE_VALUE;
    attncl_feedback_transformer_params p = *params;
    if (d.dim[0] >= STACK_STEPS && p.n_layers > 0 && !attncl__given(p.key_value_weight))
        attncl__feedback_stack(g, &p, d.dim[2]);
    if (!attncl__feedback_begin(g, &p, d.dim[1], d.dim[2], d.dim[0], &s))
        return ATTNCL_NONE_VALUE;

    struct grad_region *region = attncl__feedback_backward_begin(g, &s, x);
    const attncl_value position = attncl__graph_loop_begin(g, d.dim[0]);
    const struct loop_stack_fwd_params stack = {(int32_t)d.dim[0]};
    x = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position));
    x = attncl__feedback_one_step(g, &s, x, position, &memory);
    attncl__feedback_keep(g, &s, memory);
    x = attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(x, position));
    if (memory_ret)
        *memory_ret =
            attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(memory, position));
    attncl__graph_loop_end(g);
    attncl__feedback_backward_end(g, region, x, memory_ret ? *memory_ret : ATTNCL_NONE_VALUE);
    return attncl__feedback_normalise(g, "norm", x, p.norm_weight, p.norm_bias);
}
