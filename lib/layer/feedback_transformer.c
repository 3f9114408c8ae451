// SPDX-License-Identifier: MIT
//
// Feedback transformer (Fan et al. 2020), a step of it and a whole sequence:
//
//     x^0 = input_t;   x^l = layer_l(x^(l-1), memories of the steps before t)
//     memory_t = sum over l = 0 .. L of softmax(weights)_l x^l;   result_t = LN(x^L)

#include <inttypes.h>

#include "base/alloc.h"
#include "layer/feedback_internal.h"

enum { STACK_STEPS = 4 }; // fewest steps that repay stacking the key and value weights

// Copies a caller's structs; `layers` is owned.  False: the graph has failed.
static bool read_model(attncl_graph *g, const attncl_feedback_transformer_params *params,
                       struct feedback_model *ret)
{
    attncl_feedback_transformer_params p = ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT;
    *ret = (struct feedback_model){0};
    if (!LAYER_STRUCT(g, attncl_feedback_transformer_params, &p, params))
        return false;
    attncl_feedback_layer_params *given =
        LAYER_STRUCTS(g, attncl_feedback_layer_params, p.layers, p.n_layers);
    struct feedback_layer *layers = attncl__alloc_array(p.n_layers, sizeof *layers);
    if (!layers)
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%zu layers", p.n_layers);
    for (size_t i = 0; given && layers && i < p.n_layers; ++i)
        attncl__feedback_layer_read(g, &given[i], &layers[i]);
    attncl__free(given);
    if (attncl__graph_failed(g)) {
        attncl__free(layers);
        return false;
    }
    *ret = (struct feedback_model){
        .layers = layers,
        .n_layers = (int64_t)p.n_layers,
        .n_heads = p.n_heads,
        .weights = p.weights,
        .key_value_weight = p.key_value_weight,
        .key_value_bias = p.key_value_bias,
        .norm_weight = p.norm_weight,
        .norm_bias = p.norm_bias,
        .norm_eps = p.norm_eps,
    };
    return true;
}

// -- the key and value projections of all layers, stacked:
//
//   [key of layer 0; value of layer 0; key of layer 1 ...]   [2 N C, C], biases [2 N C]
//
// One GEMM instead of 2 N then projects a step's memory.

static bool has_biases(const struct feedback_model *p)
{
    for (int64_t i = 0; i < p->n_layers; ++i)
        if (attncl__given(p->layers[i].attn.value_bias))
            return true;
    return false;
}

static void list_maps(attncl_graph *g, const struct feedback_model *p, int64_t width,
                      attncl_value *weights, attncl_value *biases)
{
    const attncl_value none = has_biases(p) ? attncl__graph_zeros(g, 1, &width) : ATTNCL_NONE_VALUE;

    for (int64_t i = 0; i < p->n_layers; ++i) {
        const attncl_feedback_params *attn = &p->layers[i].attn;
        weights[2 * i] = attn->key_weight;
        weights[2 * i + 1] = attn->value_weight;
        biases[2 * i] = none;
        biases[2 * i + 1] = attncl__given(attn->value_bias) ? attn->value_bias : none;
    }
}

// Sets key_value_weight and key_value_bias from the layers' projections, [width, width] each.
static void stack_maps(attncl_graph *g, struct feedback_model *p, int64_t width)
{
    const int64_t n = 2 * p->n_layers;
    attncl_value *list = attncl__alloc_array((size_t)(2 * n), sizeof *list);

    if (!list) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "maps of %" PRId64 " layers", p->n_layers);
        return;
    }
    list_maps(g, p, width, list, list + n);
    p->key_value_weight = attncl_concat(g, (size_t)n, list, 0);
    if (has_biases(p))
        p->key_value_bias = attncl_concat(g, (size_t)n, list + n, 0);
    attncl__free(list);
}

// -- steps

static attncl_value build_step(attncl_graph *g, const struct feedback_model *model,
                               const struct cache_desc *cache, attncl_value x,
                               attncl_value position, attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct feedback_steps s;
    attncl_value memory;
    if (!attncl__layer_axes(g, x, "x", 2, "[B, C]", &d) ||
        !attncl__feedback_begin_steps(g, model, d.dim[0], d.dim[1], cache, &s))
        return ATTNCL_NONE_VALUE;
    x = attncl__feedback_add_step(g, &s, x, position, &memory);
    attncl__feedback_store_memory(g, &s, memory);
    if (memory_ret)
        *memory_ret = memory;
    return x;
}

// Adds a loop over the steps of x [T, B, C].  *saves_ret, unless NULL: results saved for the backward
// pass.
static attncl_value loop_steps(attncl_graph *g, struct feedback_steps *s, attncl_value x,
                               int64_t n_steps, attncl_value *memory_ret,
                               struct loop_saves *saves_ret)
{
    const struct loop_stack_fwd_params stack = {(int32_t)n_steps};
    const attncl_value position = attncl__graph_loop_begin(g, n_steps, false);
    attncl_value memory;
    x = attncl__layer_row_at(g, x, position);
    x = attncl__feedback_add_step(g, s, x, position, &memory);
    if (saves_ret)
        *saves_ret = attncl__loop_saves_add(g, s->first_kept, position, (int32_t)n_steps);
    attncl__feedback_store_memory(g, s, memory);
    x = attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(x, position));
    if (memory_ret)
        *memory_ret =
            attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(memory, position));
    attncl__graph_loop_end(g);
    return x;
}

static attncl_value build_sequence(attncl_graph *g, struct feedback_model *model, attncl_value x,
                                   attncl_value *memory_ret)
{
    struct tensor_desc d;
    struct feedback_steps s;
    struct loop_saves saves;
    if (!attncl__layer_axes(g, x, "x", 3, "[T, B, C]", &d))
        return ATTNCL_NONE_VALUE;
    if (d.dim[0] >= STACK_STEPS && model->n_layers > 0 && !attncl__given(model->key_value_weight))
        stack_maps(g, model, d.dim[2]);
    const struct cache_desc cache = {.limit = d.dim[0], .dtype = ATTNCL_F32};
    if (!attncl__feedback_begin_steps(g, model, d.dim[1], d.dim[2], &cache, &s))
        return ATTNCL_NONE_VALUE;

    struct grad_region *region = attncl__feedback_backward_begin(g, &s, x);
    const attncl_value y = loop_steps(g, &s, x, d.dim[0], memory_ret, &saves);
    attncl__feedback_backward_end(g, region, y, memory_ret ? *memory_ret : ATTNCL_NONE_VALUE,
                                  &saves);
    return y;
}

// A sequence without backward pass: stores all memories, returns row `last` only.
static attncl_value build_prefill(attncl_graph *g, const struct feedback_model *model,
                                  const struct cache_desc *cache, attncl_value x, attncl_value last)
{
    struct tensor_desc d;
    struct feedback_steps s;
    if (!attncl__layer_axes(g, x, "x", 3, "[T, B, C]", &d) ||
        !attncl__feedback_begin_steps(g, model, d.dim[1], d.dim[2], cache, &s))
        return ATTNCL_NONE_VALUE;
    return attncl__layer_row_at(g, loop_steps(g, &s, x, d.dim[0], NULL, NULL), last);
}

// Frees the model; returns the norm of x^L.
static attncl_value finish_model(attncl_graph *g, const struct feedback_model *model,
                                 attncl_value x)
{
    attncl__free(model->layers);
    return attncl__layer_normalise(g, "norm", x, model->norm_weight, model->norm_bias,
                                   model->norm_eps);
}

attncl_value attncl_feedback_transformer(attncl_graph *g,
                                         const attncl_feedback_transformer_params *params,
                                         attncl_value x, attncl_value *memory_ret)
{
    struct feedback_model model;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!read_model(g, params, &model))
        return ATTNCL_NONE_VALUE;
    return finish_model(g, &model, build_sequence(g, &model, x, memory_ret));
}

attncl_value attncl__feedback_transformer_decode(attncl_graph *g,
                                                 const attncl_feedback_transformer_params *params,
                                                 const struct cache_desc *cache, attncl_value x,
                                                 const struct decode_at *at,
                                                 attncl_value *memory_ret)
{
    struct feedback_model model;
    if (memory_ret)
        *memory_ret = ATTNCL_NONE_VALUE;
    if (!read_model(g, params, &model))
        return ATTNCL_NONE_VALUE;
    return finish_model(g, &model,
                        attncl__given(at->last)
                            ? build_prefill(g, &model, cache, x, at->last)
                            : build_step(g, &model, cache, x, at->position, memory_ret));
}

attncl_value attncl_feedback_transformer_step(attncl_graph *g,
                                              const attncl_feedback_transformer_params *params,
                                              int64_t limit, attncl_value x, attncl_value position,
                                              attncl_value *memory_ret)
{
    const struct cache_desc cache = {.limit = limit, .dtype = ATTNCL_F32};
    const struct decode_at at = {.position = position};
    return attncl__feedback_transformer_decode(g, params, &cache, x, &at, memory_ret);
}
