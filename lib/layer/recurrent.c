// SPDX-License-Identifier: MIT
//
// Gated recurrent units, and the attention decoder over them.
//
//   query = W_q h_top,   context = sum_j p_j value_j,   p = softmax over j of w . tanh(query +
//   key_j) xi    = W_context context + (W_embedding e + b),    W_ih = [W_context, W_embedding]
//
// cat(context, embedding) is never materialised: the columns of W_ih are views, and the embedded
// half of all known tokens is one GEMM.

#include <inttypes.h>

#include "attncl/attention.h"
#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "base/alloc.h"
#include "layer/layer.h"

// Index `at` of an axis of a value of three, as a view of two.
static attncl_value select_row(attncl_graph *g, attncl_value x, int axis, int64_t at)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    const int other = 1 - axis;
    const struct tensor_desc view = {
        .dtype = d.dtype,
        .rank = 2,
        .dim = {d.dim[other], d.dim[2]},
        .stride = {d.stride[other], d.stride[2]},
        .start = at * d.stride[axis],
    };
    return attncl__graph_view(g, x, &view);
}

// [B, C] as [1, B, C], or [B, 1, C]: the memory layout is the same either way.
static attncl_value with_step_axis(attncl_graph *g, attncl_value x, const char *name, int axis)
{
    struct tensor_desc d;
    if (!attncl__layer_axes(g, x, name, 2, "[B, C]", &d))
        return ATTNCL_NONE_VALUE;
    const int64_t dim[3] = {axis == 0 ? 1 : d.dim[0], axis == 0 ? d.dim[0] : 1, d.dim[1]};
    return attncl_reshape(g, x, 3, dim);
}

static attncl_value add_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                            attncl_value h0, attncl_layout layout)
{
    const struct gru_fwd_params gru = {.layout = (int32_t)layout};
    return attncl__graph_add(g, &attncl__op_gru_fwd, &gru,
                             IN(xi, params->weight_hh, params->bias_hh, h0));
}

attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                             attncl_value h)
{
    const attncl_value y =
        add_gru(g, params, with_step_axis(g, xi, "xi", 0), h, ATTNCL_LAYOUT_TIME_FIRST);
    return select_row(g, y, 0, 0);
}

attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                        attncl_value h0, attncl_layout layout, attncl_value *last_ret)
{
    const int steps = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    struct tensor_desc d;
    if (last_ret)
        *last_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, x, "x", 3, steps ? "[B, T, I]" : "[T, B, I]", &d))
        return ATTNCL_NONE_VALUE;
    if (d.dim[steps] < 1)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "x is %s, T must be at least 1", SHAPE(&d));

    const attncl_value xi = attncl_linear(g, x, params->weight_ih, params->bias_ih);
    const attncl_value y = add_gru(g, params, xi, h0, layout);
    if (last_ret)
        *last_ret = select_row(g, y, steps, d.dim[steps] - 1);
    return y;
}

static bool check_layers(attncl_graph *g, const attncl_gru_params *layers, int64_t n_layers,
                         const attncl_value *states)
{
    if (attncl__graph_failed(g))
        return false;
    if (n_layers < 1 || !layers || !states) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%" PRId64 " recurrent layers, must be at least 1",
                   layers && states ? n_layers : 0);
        return false;
    }
    return true;
}

static void push_layer(attncl_graph *g, int64_t k)
{
    char name[24];
    snprintf(name, sizeof name, "l%" PRId64, k);
    attncl_graph_push_scope(g, name);
}

attncl_value attncl_gru_layers(attncl_graph *g, const attncl_gru_params *layers, int64_t n_layers,
                               attncl_value x, attncl_layout layout, attncl_value *states)
{
    if (!check_layers(g, layers, n_layers, states))
        return ATTNCL_NONE_VALUE;
    for (int64_t k = 0; k < n_layers; ++k) {
        push_layer(g, k);
        x = attncl_gru(g, &layers[k], x, states[k], layout, &states[k]);
        attncl_graph_pop_scope(g);
    }
    return x;
}

attncl_bahdanau_source attncl_bahdanau_attend(attncl_graph *g, const attncl_bahdanau_params *params,
                                              attncl_value outputs, attncl_value valid_lens)
{
    attncl_graph_push_scope(g, "attention");
    const attncl_bahdanau_source source = {
        .keys = attncl_linear(g, outputs, params->key_weight, ATTNCL_NONE_VALUE),
        .values = outputs,
        .valid_lens = valid_lens,
    };
    attncl_graph_pop_scope(g);
    return source;
}

// The columns of the first layer's W_ih from `begin` on, or before it.
static attncl_value columns(attncl_graph *g, const attncl_bahdanau_params *params, bool before,
                            int64_t begin)
{
    const attncl_value weight = params->layers[0].weight_ih;
    struct tensor_desc d;
    if (!attncl__layer_axes(g, weight, "weight_ih", 2, "[3 H, H + E]", &d))
        return ATTNCL_NONE_VALUE;
    return attncl_slice(g, weight, 1, before ? 0 : begin, before ? begin : d.dim[1]);
}

attncl_value attncl_bahdanau_input(attncl_graph *g, const attncl_bahdanau_params *params,
                                   attncl_value embedded)
{
    struct tensor_desc weight;
    if (!attncl__layer_axes(g, params->query_weight, "the query's weight", 2, "[N, H]", &weight))
        return ATTNCL_NONE_VALUE;
    attncl_graph_push_scope(g, "l0");
    const attncl_value xi = attncl_linear(g, embedded, columns(g, params, false, weight.dim[1]),
                                          params->layers[0].bias_ih);
    attncl_graph_pop_scope(g);
    return xi;
}

// [B, 1, H] for a state [B, H] that is the query.
static attncl_value find_context(attncl_graph *g, const attncl_bahdanau_params *params,
                                 const attncl_bahdanau_source *source, attncl_value state,
                                 attncl_value *weights_ret)
{
    attncl_graph_push_scope(g, "attention");
    const attncl_value query =
        attncl_linear(g, state, params->query_weight, ATTNCL_NONE_VALUE); // [B, N]
    const attncl_value context = attncl_additive_attention(
        g, with_step_axis(g, query, "the decoder's state", 1), source->keys, source->values,
        params->score_weight, source->valid_lens, weights_ret);
    attncl_graph_pop_scope(g);
    return context;
}

attncl_value attncl_bahdanau_step(attncl_graph *g, const attncl_bahdanau_params *params,
                                  const attncl_bahdanau_source *source, attncl_value input,
                                  attncl_value *states, attncl_value *weights_ret)
{
    const attncl_gru_params *layers = params->layers;
    const int64_t top = params->n_layers - 1;
    attncl_linear_desc add = ATTNCL_LINEAR_DESC_INIT;
    struct tensor_desc d;
    add.residual = input;
    if (!check_layers(g, layers, params->n_layers, states))
        return ATTNCL_NONE_VALUE;
    const attncl_value context = find_context(g, params, source, states[top], weights_ret);
    if (!attncl__layer_shape(g, context, "context", &d))
        return ATTNCL_NONE_VALUE;

    const attncl_value weight = columns(g, params, true, d.dim[2]);
    attncl_value xi = attncl_linear_fused(g, &add, context, weight, ATTNCL_NONE_VALUE);
    xi = select_row(g, xi, 1, 0);
    for (int64_t k = 0; k <= top; ++k) {
        push_layer(g, k);
        if (k > 0)
            xi = attncl_linear(g, states[k - 1], layers[k].weight_ih, layers[k].bias_ih);
        states[k] = attncl_gru_cell(g, &layers[k], xi, states[k]);
        attncl_graph_pop_scope(g);
    }
    return with_step_axis(g, states[top], "the decoder's state", 1);
}

attncl_value attncl_bahdanau_decoder(attncl_graph *g, const attncl_bahdanau_params *params,
                                     const attncl_bahdanau_source *source, attncl_value embedded,
                                     attncl_value *states, attncl_value *weights_ret)
{
    struct tensor_desc d;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, embedded, "embedded", 3, "[B, T, E]", &d) ||
        !check_layers(g, params->layers, params->n_layers, states))
        return ATTNCL_NONE_VALUE;
    const int64_t n_steps = d.dim[1];
    attncl_value *tops = attncl__alloc_array((size_t)n_steps, 2 * sizeof *tops);
    if (!tops)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " steps", n_steps);

    attncl_value *weights = tops + n_steps;
    const attncl_value xi = attncl_bahdanau_input(g, params, embedded); // [B, T, 3 H]
    for (int64_t t = 0; t < n_steps && !attncl__graph_failed(g); ++t) {
        const attncl_value input = attncl_slice(g, xi, 1, t, t + 1);
        tops[t] = attncl_bahdanau_step(g, params, source, input, states,
                                       weights_ret ? &weights[t] : NULL);
    }
    const attncl_value y = attncl_concat(g, n_steps, tops, 1);
    if (weights_ret)
        *weights_ret = attncl_concat(g, n_steps, weights, 1);
    attncl__free(tops);
    return y;
}
