// SPDX-License-Identifier: MIT
//
// Feedback transformer (Fan et al. 2020):
//
//     x^0 = input_t;   x^l = layer_l(x^(l-1), memories of the steps before t)
//     memory_t = sum over l = 0 .. L of softmax(weights)_l x^l;   result_t = LN(x^L)
//     layer: x += attn(LN(x), memories) unless t = 0;   x += FF(LN(x))
//
// A step is one set of nodes for every place: it reads its place in device memory, attends to what
// the cache holds before it, and appends its own keys and values.  At place 0 a gate of zeros shuts
// the attention's output off, bias and all.

#include <inttypes.h>
#include <stdio.h>

#include "attncl/feedback.h"
#include "layer/feedback_stack.h"
#include "layer/layer.h"

static const float norm_eps = 1e-5f;

// So many steps are worth a copy of the key and value maps.
enum { STACK_STEPS = 4 };

static attncl_value normalise(attncl_graph *g, const char *scope, attncl_value x,
                              attncl_value weight, attncl_value bias)
{
    attncl_graph_push_scope(g, scope);
    const attncl_value y = attncl_layer_norm(g, x, weight, bias, norm_eps);
    attncl_graph_pop_scope(g);
    return y;
}

// What a query attends to.
struct memories {
    attncl_value keys, values; // [S, B, H, D]
    attncl_value position;     // I32 [1]: how many there are yet; null: all
    attncl_value gate; // [B, C], multiplies the output before the residual is added; null: 1
};

static attncl_value attend(attncl_graph *g, const attncl_feedback_params *p, attncl_value query,
                           const struct memories *m, attncl_value residual,
                           attncl_value *weights_ret)
{
    attncl_linear_desc output = ATTNCL_LINEAR_DESC_INIT;
    output.gate = m->gate;
    output.residual = residual;

    const attncl_value none = ATTNCL_NONE_VALUE;
    const attncl_value q = attncl__layer_project(g, "query", query, p->query_weight, none, none);
    const attncl_value y =
        attncl__graph_add(g,
                          weights_ret ? &attncl__op_feedback_attention_weights_fwd
                                      : &attncl__op_feedback_attention_fwd,
                          NULL,
                          IN(q, m->keys, m->values, p->key_pos_embeddings, p->query_pos_bias,
                             p->key_pos_bias, m->position));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    attncl_graph_push_scope(g, "output");
    const attncl_value x = attncl_linear_fused(g, &output, y, p->output_weight, p->output_bias);
    attncl_graph_pop_scope(g);
    return x;
}

static bool check_heads(attncl_graph *g, int64_t n_heads, int64_t width)
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
    if (!attncl__layer_axes(g, y, scope, 3, "[S, B, C]", &d) || !check_heads(g, n_heads, d.dim[2]))
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
    struct memories m = {.keys = key, .values = value};
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (attncl__given(p->key_weight)) {
        m.keys = project_heads(g, "key", key, p->key_weight, ATTNCL_NONE_VALUE, n_heads);
        m.values = project_heads(g, "value", value, p->value_weight, p->value_bias, n_heads);
    }
    return attend(g, p, query, &m, residual, weights_ret);
}

// x + FF(LN(x))
static attncl_value feed_forward(attncl_graph *g, const attncl_feedback_layer_params *p,
                                 attncl_value x)
{
    const attncl_value z = normalise(g, "norm_ff", x, p->norm_ffn_weight, p->norm_ffn_bias);
    attncl_graph_push_scope(g, "feed_forward");
    const attncl_value y = attncl_feed_forward(g, &p->ffn, p->activation, z, x);
    attncl_graph_pop_scope(g);
    return y;
}

attncl_value attncl_feedback_layer(attncl_graph *g, const attncl_feedback_layer_params *params,
                                   int64_t n_heads, attncl_value x, attncl_value memory)
{
    const attncl_feedback_layer_params *p = params;
    if (attncl__given(memory) && attncl_graph_shape(g, memory).dim[0] != 0) {
        const attncl_value z =
            normalise(g, "norm_self_attn", x, p->norm_attn_weight, p->norm_attn_bias);
        attncl_graph_push_scope(g, "attn");
        x = attncl_feedback_attention(g, &p->attn, n_heads, z, memory, memory, x, NULL);
        attncl_graph_pop_scope(g);
    }
    return feed_forward(g, p, x);
}

// A model's steps: what they share.
struct steps {
    const attncl_feedback_transformer_params *p;
    int64_t n_sets;     // of keys and values: one for each layer, or one for all
    attncl_value cache; // state [2 n_sets, B, H, places, D]; null: no layer reads it
    attncl_value position, gate;
};

// Room for the memories of `limit` steps but the last, which no step attends to.
static attncl_value make_cache(attncl_graph *g, const struct steps *s, int64_t limit,
                               int64_t n_batch, int64_t width)
{
    struct tensor_desc d;
    const attncl_feedback_transformer_params *p = s->p;
    if (!check_heads(g, p->n_heads, width) ||
        !attncl__layer_axes(g, p->layers[0].attn.key_pos_embeddings, "key_pos_embeddings", 3,
                            "[P, H, D]", &d))
        return ATTNCL_NONE_VALUE;
    if (limit - 1 > d.dim[0])
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "%" PRId64 " steps have %" PRId64
                          " memories, key_pos_embeddings has places for %" PRId64,
                          limit, limit - 1, d.dim[0]);
    const int64_t places = limit > 1 ? limit - 1 : 1;
    const int64_t dim[5] = {2 * s->n_sets, n_batch, p->n_heads, places, width / p->n_heads};
    return attncl_graph_state(g, "memory", ATTNCL_F32, 5, dim);
}

static bool begin_steps(attncl_graph *g, const attncl_feedback_transformer_params *p,
                        int64_t n_batch, int64_t width, int64_t limit, struct steps *s)
{
    struct tensor_desc stacked;
    *s = (struct steps){.p = p, .n_sets = p->n_layers};
    if (attncl__given(p->key_value_weight)) {
        if (!attncl__layer_axes(g, p->key_value_weight, "key_value_weight", 2, "[2 N C, C]",
                                &stacked))
            return false;
        s->n_sets = width > 0 ? stacked.dim[0] / (2 * width) : 0;
        if (stacked.dim[0] != 2 * s->n_sets * width ||
            (s->n_sets != 1 && s->n_sets != p->n_layers)) {
            GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                       "key_value_weight has shape %s, expected [2 N C, C] with C = %" PRId64
                       ", N = 1 or %" PRId64,
                       SHAPE(&stacked), width, p->n_layers);
            return false;
        }
    }
    if (p->n_layers > 0)
        s->cache = make_cache(g, s, limit, n_batch, width);
    return !attncl__graph_failed(g);
}

// A slot of the cache, [places, B, H, D].
static attncl_value cache_slot(attncl_graph *g, attncl_value cache, int64_t slot)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, cache, "cache", &d))
        return ATTNCL_NONE_VALUE;
    const struct tensor_desc view = {
        .dtype = ATTNCL_F32,
        .rank = 4,
        .dim = {d.dim[3], d.dim[1], d.dim[2], d.dim[4]},
        .stride = {d.stride[3], d.stride[1], d.stride[2], d.stride[4]},
        .start = slot * d.stride[0],
    };
    return attncl__graph_view(g, cache, &view);
}

static attncl_value layer_step(attncl_graph *g, const struct steps *s, int64_t i, attncl_value x)
{
    const attncl_feedback_layer_params *p = &s->p->layers[i];
    const int64_t set = s->n_sets == 1 ? 0 : i;
    const struct memories m = {cache_slot(g, s->cache, 2 * set),
                               cache_slot(g, s->cache, 2 * set + 1), s->position, s->gate};
    char scope[32];

    snprintf(scope, sizeof scope, "layers.%" PRId64, i);
    attncl_graph_push_scope(g, scope);
    const attncl_value z =
        normalise(g, "norm_self_attn", x, p->norm_attn_weight, p->norm_attn_bias);
    attncl_graph_push_scope(g, "attn");
    x = attend(g, &p->attn, z, &m, x, NULL);
    attncl_graph_pop_scope(g);
    x = feed_forward(g, p, x);
    attncl_graph_pop_scope(g);
    return x;
}

// A running mix of a step's values: eight at a time, as many as the op takes.
struct mix {
    attncl_value weights, sum; // sum: what was mixed so far, null at first
    attncl_value waiting[8];
    int n_waiting;
    int64_t n_mixed;
};

static void mix_waiting(attncl_graph *g, struct mix *m)
{
    const struct feedback_mix_fwd_params params = {(int32_t)m->n_mixed};
    const attncl_value *x = m->waiting;
    m->sum =
        attncl__graph_add(g, &attncl__op_feedback_mix_fwd, &params,
                          IN(m->weights, m->sum, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
    m->n_mixed += m->n_waiting;
    m->n_waiting = 0;
    for (int i = 0; i < 8; ++i)
        m->waiting[i] = ATTNCL_NONE_VALUE;
}

static void mix_add(attncl_graph *g, struct mix *m, attncl_value x)
{
    if (m->n_waiting == 8)
        mix_waiting(g, m);
    m->waiting[m->n_waiting++] = x;
}

static void store(attncl_graph *g, const struct steps *s, attncl_value x, int64_t slot)
{
    const struct feedback_store_fwd_params params = {(int32_t)slot};
    attncl__graph_add(g, &attncl__op_feedback_store_fwd, &params, IN(x, s->position, s->cache));
}

// Keys and values of this step's memory, to the cache.
static void keep(attncl_graph *g, const struct steps *s, attncl_value memory)
{
    const attncl_feedback_transformer_params *p = s->p;
    const attncl_value none = ATTNCL_NONE_VALUE;
    if (attncl__given(p->key_value_weight)) {
        store(g, s,
              attncl__layer_project(g, "key_value", memory, p->key_value_weight, p->key_value_bias,
                                    none),
              0);
        return;
    }
    for (int64_t i = 0; i < p->n_layers; ++i) {
        const attncl_feedback_params *attn = &p->layers[i].attn;
        store(g, s, attncl__layer_project(g, "key", memory, attn->key_weight, none, none), 2 * i);
        store(g, s,
              attncl__layer_project(g, "value", memory, attn->value_weight, attn->value_bias, none),
              2 * i + 1);
    }
}

// x [B, C] -> x^L [B, C], before the last norm.
static attncl_value step(attncl_graph *g, struct steps *s, attncl_value x, attncl_value position,
                         attncl_value *memory_ret)
{
    struct mix mix = {.weights = s->p->weights};
    s->position = position;
    s->gate = attncl__graph_add(g, &attncl__op_feedback_gate_fwd, NULL, IN(x, position));
    mix_add(g, &mix, x);
    for (int64_t i = 0; i < s->p->n_layers; ++i) {
        x = layer_step(g, s, i, x);
        mix_add(g, &mix, x);
    }
    mix_waiting(g, &mix);
    if (s->p->n_layers > 0)
        keep(g, s, mix.sum);
    *memory_ret = mix.sum;
    return x;
}

attncl_value attncl_feedback_transformer_step(attncl_graph *g,
                                              const attncl_feedback_transformer_params *params,
                                              int64_t limit, attncl_value x, attncl_value position,
                                              attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct steps s;
    attncl_value memory;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, x, "x", 2, "[B, C]", &d) ||
        !begin_steps(g, params, d.dim[0], d.dim[1], limit, &s))
        return ATTNCL_NONE_VALUE;
    x = step(g, &s, x, position, &memory);
    if (memory_ret)
        *memory_ret = memory;
    return normalise(g, "norm", x, params->norm_weight, params->norm_bias);
}

attncl_value attncl_feedback_transformer(attncl_graph *g,
                                         const attncl_feedback_transformer_params *params,
                                         attncl_value x, attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct steps s;
    attncl_value memory;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, x, "x", 3, "[T, B, C]", &d))
        return ATTNCL_NONE_VALUE;
    attncl_feedback_transformer_params p = *params;
    if (d.dim[0] >= STACK_STEPS && p.n_layers > 0 && !attncl__given(p.key_value_weight))
        attncl__feedback_stack(g, &p, d.dim[2]);
    if (!begin_steps(g, &p, d.dim[1], d.dim[2], d.dim[0], &s))
        return ATTNCL_NONE_VALUE;

    const attncl_value position = attncl__graph_loop_begin(g, d.dim[0]);
    const struct loop_stack_fwd_params stack = {(int32_t)d.dim[0]};
    x = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position));
    x = step(g, &s, x, position, &memory);
    x = attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(x, position));
    if (memory_ret)
        *memory_ret =
            attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(memory, position));
    attncl__graph_loop_end(g);
    return normalise(g, "norm", x, p.norm_weight, p.norm_bias);
}
