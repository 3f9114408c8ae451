// SPDX-License-Identifier: MIT
//
// Additive attention, and an attention decoder over gated recurrent units (Bahdanau et al. 2014).
//
//   query = W_q h_top,   context = sum_j p_j value_j
//   p = softmax over j of w . tanh(query + key_j)
//   xi = W_context context + (W_embedding e + b),   W_ih = [W_context, W_embedding]
//
// cat(context, embedding) is never materialised: the columns of W_ih are views, and one GEMM computes
// the embedded half of all known tokens.

#include "base/alloc.h"
#include "layer/layer.h"

// attncl_additive_attention() of q, k, v, w and valid_lens, with dropout of the weights; NULL: none.
static attncl_value attend(attncl_graph *g, const attncl_dropout_desc *desc,
                           const attncl_value in[5], attncl_value *weights_ret)
{
    struct additive_attention_fwd_params params = {.want_weights = weights_ret != NULL};
    attncl_dropout_desc d;
    if (!attncl__layer_dropout(g, desc, &d, &params.dropout) ||
        !attncl__layer_check_absent(g, d.residual, "the residual of a dropout of weights"))
        return ATTNCL_NONE_VALUE;
    const attncl_value none = ATTNCL_NONE_VALUE;
    const bool drops = d.p > 0;
    const attncl_value y = attncl__graph_add(
        g, &attncl__op_additive_attention_fwd, &params,
        IN(in[0], in[1], in[2], in[3], in[4], drops ? d.step : none, drops ? d.position : none));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    return y;
}

attncl_value attncl_additive_attention(attncl_graph *g, attncl_value q, attncl_value k,
                                       attncl_value v, attncl_value w, attncl_value valid_lens,
                                       attncl_value *weights_ret)
{
    const attncl_value in[] = {q, k, v, w, valid_lens};
    return attend(g, NULL, in, weights_ret);
}

// Copies of the caller's structs; `layers` is owned.
struct bahdanau {
    attncl_bahdanau_params p;
    attncl_bahdanau_source source;
    attncl_gru_params *layers;
};

// False: the graph has failed and there is nothing to release.
static bool read_bahdanau(attncl_graph *g, const attncl_bahdanau_params *params,
                          const attncl_bahdanau_source *source, const attncl_value *states,
                          struct bahdanau *ret)
{
    *ret =
        (struct bahdanau){.p = ATTNCL_BAHDANAU_PARAMS_INIT, .source = ATTNCL_BAHDANAU_SOURCE_INIT};
    if (!LAYER_STRUCT(g, attncl_bahdanau_params, &ret->p, params) ||
        !LAYER_STRUCT(g, attncl_bahdanau_source, &ret->source, source))
        return false;
    ret->layers = attncl__gru_layers_read(g, ret->p.layers, ret->p.n_layers, states);
    return ret->layers != NULL;
}

void attncl_bahdanau_attend(attncl_graph *g, const attncl_bahdanau_params *params,
                            attncl_value outputs, attncl_value valid_lens,
                            attncl_bahdanau_source *source_ret)
{
    attncl_bahdanau_params p = ATTNCL_BAHDANAU_PARAMS_INIT;
    attncl_bahdanau_source source = ATTNCL_BAHDANAU_SOURCE_INIT;
    if (LAYER_STRUCT(g, attncl_bahdanau_params, &p, params)) {
        source.keys = attncl__layer_project(g, "attention", outputs, p.key_weight,
                                            ATTNCL_NONE_VALUE, ATTNCL_NONE_VALUE);
        source.values = outputs;
        source.valid_lens = valid_lens;
    }
    LAYER_STRUCT_WRITE(g, attncl_bahdanau_source, source_ret, &source);
}

// Columns [begin, end) of the first layer's W_ih; end -1: all from `begin` on.
static attncl_value slice_columns(attncl_graph *g, attncl_value weight, int64_t begin, int64_t end)
{
    struct tensor_desc d;
    if (!attncl__layer_axes(g, weight, "weight_ih", 2, "[3 H, H + E]", &d))
        return ATTNCL_NONE_VALUE;
    return attncl_slice(g, weight, 1, begin, end < 0 ? d.dim[1] : end);
}

static attncl_value project_embedded(attncl_graph *g, attncl_value query_weight,
                                     const attncl_gru_params *first, attncl_value embedded)
{
    struct tensor_desc weight;
    if (!attncl__layer_axes(g, query_weight, "the query's weight", 2, "[N, H]", &weight))
        return ATTNCL_NONE_VALUE;
    return attncl__layer_project(g, "l0", embedded,
                                 slice_columns(g, first->weight_ih, weight.dim[1], -1),
                                 first->bias_ih, ATTNCL_NONE_VALUE);
}

attncl_value attncl_bahdanau_input(attncl_graph *g, const attncl_bahdanau_params *params,
                                   attncl_value embedded)
{
    attncl_bahdanau_params p = ATTNCL_BAHDANAU_PARAMS_INIT;
    attncl_gru_params first = ATTNCL_GRU_PARAMS_INIT;
    if (!LAYER_STRUCT(g, attncl_bahdanau_params, &p, params) ||
        !LAYER_STRUCT(g, attncl_gru_params, &first, p.layers))
        return ATTNCL_NONE_VALUE;
    return project_embedded(g, p.query_weight, &first, embedded);
}

// Dropout for step t, whose values are row t of those of all steps.
static attncl_dropout_desc step_dropout(attncl_graph *g, const attncl_dropout_desc *desc, int64_t t)
{
    const int32_t row = (int32_t)t;
    const int64_t one = 1;
    struct dropout_fwd_params params;
    attncl_dropout_desc d;
    if (!attncl__layer_dropout(g, desc, &d, &params) || d.p == 0)
        return (attncl_dropout_desc)ATTNCL_DROPOUT_DESC_INIT;
    d.batch_axis = 0;
    d.position = attncl_graph_constant(g, ATTNCL_I32, 1, &one, &row);
    return d;
}

// The context [B, 1, H] for the query `state` [B, H].
static attncl_value add_attention(attncl_graph *g, const struct bahdanau *b, int64_t t,
                                  attncl_value state, attncl_value *weights_ret)
{
    const attncl_dropout_desc dropout = step_dropout(g, b->p.dropout, t);
    attncl_graph_push_scope(g, "attention");
    const attncl_value query =
        attncl_linear(g, state, b->p.query_weight, ATTNCL_NONE_VALUE); // [B, N]
    const attncl_value in[] = {attncl__layer_step_axis(g, query, "the decoder's state", 1),
                               b->source.keys, b->source.values, b->p.score_weight,
                               b->source.valid_lens};
    const attncl_value context = attend(g, &dropout, in, weights_ret);
    attncl_graph_pop_scope(g);
    return context;
}

static attncl_value decode_step(attncl_graph *g, const struct bahdanau *b, int64_t t,
                                attncl_value input, attncl_value *states, attncl_value *weights_ret)
{
    const attncl_gru_params *layers = b->layers;
    const size_t top = b->p.n_layers - 1;
    attncl_linear_desc add = ATTNCL_LINEAR_DESC_INIT;
    struct tensor_desc d;
    add.residual = input;
    const attncl_value context = add_attention(g, b, t, states[top], weights_ret);
    if (!attncl__layer_shape(g, context, "context", &d))
        return ATTNCL_NONE_VALUE;

    const attncl_value weight = slice_columns(g, layers[0].weight_ih, 0, d.dim[2]);
    attncl_value xi = attncl_linear_fused(g, &add, context, weight, ATTNCL_NONE_VALUE);
    xi = attncl__layer_row(g, xi, 1, 0);
    for (size_t k = 0; k <= top; ++k) {
        attncl__gru_layer_push(g, k);
        if (k > 0) {
            const attncl_dropout_desc dropout = step_dropout(g, layers[k].dropout, t);
            xi = attncl_linear(g, attncl_dropout(g, states[k - 1], &dropout), layers[k].weight_ih,
                               layers[k].bias_ih);
        }
        states[k] = attncl__gru_cell(g, &layers[k], xi, states[k]);
        attncl_graph_pop_scope(g);
    }
    return attncl__layer_step_axis(g, states[top], "the decoder's state", 1);
}

attncl_value attncl_bahdanau_step(attncl_graph *g, const attncl_bahdanau_params *params,
                                  const attncl_bahdanau_source *source, attncl_value input,
                                  attncl_value *states, attncl_value *weights_ret)
{
    struct bahdanau b;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!read_bahdanau(g, params, source, states, &b))
        return ATTNCL_NONE_VALUE;
    const attncl_value y = decode_step(g, &b, 0, input, states, weights_ret);
    attncl__free(b.layers);
    return y;
}

// Returns the top layer's states of n_steps steps; *weights_ret, unless NULL: the weights of all steps.
static attncl_value decode_steps(attncl_graph *g, const struct bahdanau *b, attncl_value embedded,
                                 int64_t n_steps, attncl_value *states, attncl_value *weights_ret)
{
    const size_t n = (size_t)n_steps;
    attncl_value *tops = attncl__alloc_array(n, 2 * sizeof *tops);
    if (!tops)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%zu steps", n);

    attncl_value *weights = tops + n;
    const attncl_value xi =
        project_embedded(g, b->p.query_weight, &b->layers[0], embedded); // [B, T, 3 H]
    for (int64_t t = 0; t < n_steps && !attncl__graph_failed(g); ++t) {
        const attncl_value input = attncl_slice(g, xi, 1, t, t + 1);
        tops[t] = decode_step(g, b, t, input, states, weights_ret ? &weights[t] : NULL);
    }
    const attncl_value y = attncl_concat(g, n, tops, 1);
    if (weights_ret)
        *weights_ret = attncl_concat(g, n, weights, 1);
    attncl__free(tops);
    return y;
}

attncl_value attncl_bahdanau_decoder(attncl_graph *g, const attncl_bahdanau_params *params,
                                     const attncl_bahdanau_source *source, attncl_value embedded,
                                     attncl_value *states, attncl_value *weights_ret)
{
    struct tensor_desc d;
    struct bahdanau b;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, embedded, "embedded", 3, "[B, T, E]", &d) ||
        !read_bahdanau(g, params, source, states, &b))
        return ATTNCL_NONE_VALUE;
    const attncl_value y = decode_steps(g, &b, embedded, d.dim[1], states, weights_ret);
    attncl__free(b.layers);
    return y;
}
