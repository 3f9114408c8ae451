// SPDX-License-Identifier: MIT
//
// Softmax attention, multi-head attention, kernel regression.  Heads are views: they are cut out of
// a projection without a copy, and the op stores its result so that merging them takes none either.

#include <inttypes.h>
#include <math.h>

#include "attncl/attention.h"
#include "attncl/ops.h"
#include "layer/layer.h"

static const attncl_attention_desc default_desc = ATTNCL_ATTENTION_DESC_INIT;

static bool check_desc(attncl_graph *g, const attncl_attention_desc *desc)
{
    if (desc->struct_size < sizeof *desc)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "attention desc has struct_size %zu, expected %zu",
                   desc->struct_size, sizeof *desc);
    else if (desc->layout != ATTNCL_LAYOUT_TIME_FIRST && desc->layout != ATTNCL_LAYOUT_BATCH_FIRST)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "layout %d is unknown", (int)desc->layout);
    else if (!isfinite(desc->scale))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "scale is %g, must be finite", (double)desc->scale);
    return !attncl__graph_failed(g);
}

// The op reads contiguous rows: a strided last axis is copied.
static attncl_value with_whole_rows(attncl_graph *g, attncl_value x)
{
    const struct tensor_desc *d = attncl__graph_failed(g) ? NULL : attncl__graph_desc(g, x);
    if (!d || d->rank == 0 || d->dim[d->rank - 1] <= 1 || d->stride[d->rank - 1] == 1)
        return x;
    return attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(x));
}

attncl_value attncl_attention(attncl_graph *g, const attncl_attention_desc *desc, attncl_value q,
                              attncl_value k, attncl_value v, attncl_value mask,
                              attncl_value valid_lens, attncl_value *weights_ret)
{
    static const int from_tbhe[] = {1, 2, 0, 3}, from_bthe[] = {0, 2, 1, 3};
    struct tensor_desc d;
    desc = desc ? desc : &default_desc;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!attncl__layer_axes(g, q, "q", 4, "[B, H, T, D]", &d) || !check_desc(g, desc))
        return ATTNCL_NONE_VALUE;

    const struct attention_fwd_params params = {
        .scale = desc->scale != 0 ? desc->scale : (float)(1 / sqrt((double)d.dim[3])),
        .causal = desc->causal != 0,
        .window = desc->window,
        .layout = desc->layout,
        .want_weights = weights_ret != NULL,
    };
    const attncl_value y = attncl__graph_add(
        g, &attncl__op_attention_fwd, &params,
        IN(with_whole_rows(g, q), with_whole_rows(g, k), with_whole_rows(g, v), mask, valid_lens));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    return attncl_permute(g, y, desc->layout == ATTNCL_LAYOUT_TIME_FIRST ? from_tbhe : from_bthe);
}

attncl_value attncl_additive_attention(attncl_graph *g, attncl_value q, attncl_value k,
                                       attncl_value v, attncl_value w, attncl_value valid_lens,
                                       attncl_value *weights_ret)
{
    const struct additive_attention_fwd_params params = {weights_ret != NULL};
    const attncl_value y = attncl__graph_add(g, &attncl__op_additive_attention_fwd, &params,
                                             IN(q, k, v, w, valid_lens));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    return y;
}

attncl_value attncl_split_heads(attncl_graph *g, attncl_value x, int64_t n_heads,
                                attncl_layout layout)
{
    const int b = layout == ATTNCL_LAYOUT_TIME_FIRST ? 1 : 0, t = 1 - b;
    struct tensor_desc d;
    if (!attncl__layer_axes(g, x, "x", 3, b ? "[T, B, C]" : "[B, T, C]", &d))
        return ATTNCL_NONE_VALUE;
    if (n_heads < 1 || d.dim[2] % n_heads != 0)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "C = %" PRId64 " cannot be cut into H = %" PRId64 " heads", d.dim[2],
                          n_heads);
    const int64_t width = d.dim[2] / n_heads;
    const struct tensor_desc heads = {
        .dtype = d.dtype,
        .rank = 4,
        .dim = {d.dim[b], n_heads, d.dim[t], width},
        .stride = {d.stride[b], width * d.stride[2], d.stride[t], d.stride[2]},
    };
    return attncl__graph_view(g, x, &heads);
}

attncl_value attncl_merge_heads(attncl_graph *g, attncl_value x, attncl_layout layout)
{
    static const int to_tbhe[] = {2, 0, 1, 3}, to_bthe[] = {0, 2, 1, 3};
    struct tensor_desc d;
    if (!attncl__layer_axes(g, x, "x", 4, "[B, H, T, E]", &d))
        return ATTNCL_NONE_VALUE;
    const bool time_first = layout == ATTNCL_LAYOUT_TIME_FIRST;
    const int64_t dim[3] = {d.dim[time_first ? 2 : 0], d.dim[time_first ? 0 : 2],
                            d.dim[1] * d.dim[3]};
    return attncl_reshape(g, attncl_permute(g, x, time_first ? to_tbhe : to_bthe), 3, dim);
}

static attncl_value project(attncl_graph *g, const char *scope, attncl_value x, attncl_value weight,
                            attncl_value bias, attncl_value residual)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    desc.residual = residual;

    attncl_graph_push_scope(g, scope);
    const attncl_value y = attncl_linear_fused(g, &desc, x, weight, bias);
    attncl_graph_pop_scope(g);
    return y;
}

attncl_value attncl_multi_head_attention(attncl_graph *g, const attncl_attention_desc *desc,
                                         const attncl_mha_params *params, int64_t n_heads,
                                         attncl_value query, attncl_value key, attncl_value value,
                                         attncl_value mask, attncl_value valid_lens,
                                         attncl_value residual, attncl_value *weights_ret)
{
    const attncl_mha_params *p = params;
    const attncl_value none = ATTNCL_NONE_VALUE;
    desc = desc ? desc : &default_desc;
    const attncl_layout layout = desc->layout;
    const attncl_value q = project(g, "query", query, p->query_weight, p->query_bias, none);
    const attncl_value k = project(g, "key", key, p->key_weight, p->key_bias, none);
    const attncl_value v = project(g, "value", value, p->value_weight, p->value_bias, none);
    const attncl_value y =
        attncl_attention(g, desc, attncl_split_heads(g, q, n_heads, layout),
                         attncl_split_heads(g, k, n_heads, layout),
                         attncl_split_heads(g, v, n_heads, layout), mask, valid_lens, weights_ret);
    return project(g, "output", attncl_merge_heads(g, y, layout), p->output_weight, p->output_bias,
                   residual);
}

// y [B, C] of one position.  State: the keys and values of all positions so far.
static attncl_value attend_step(attncl_graph *g, int64_t n_heads, int64_t limit, attncl_value q,
                                attncl_value k, attncl_value v, attncl_value position)
{
    struct tensor_desc d;
    if (!attncl__layer_axes(g, q, "x", 2, "[B, C]", &d))
        return ATTNCL_NONE_VALUE;
    if (n_heads < 1 || n_heads > d.dim[1] || d.dim[1] % n_heads != 0)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "C = %" PRId64 " cannot be cut into H = %" PRId64 " heads", d.dim[1],
                          n_heads);
    const struct attention_step_fwd_params params = {
        .scale = (float)(1 / sqrt((double)(d.dim[1] / n_heads))), .n_heads = (int32_t)n_heads};
    const int64_t dim[3] = {limit, d.dim[0], d.dim[1]};
    const attncl_value keys = attncl_graph_state(g, "keys", ATTNCL_F32, 3, dim);
    const attncl_value values = attncl_graph_state(g, "values", ATTNCL_F32, 3, dim);
    return attncl__graph_add(g, &attncl__op_attention_step_fwd, &params,
                             IN(q, k, v, position, keys, values));
}

attncl_value attncl_multi_head_attention_step(attncl_graph *g, const attncl_mha_params *params,
                                              int64_t n_heads, int64_t limit, attncl_value x,
                                              attncl_value position, attncl_value residual)
{
    const attncl_mha_params *p = params;
    const attncl_value none = ATTNCL_NONE_VALUE;
    const attncl_value q = project(g, "query", x, p->query_weight, p->query_bias, none);
    const attncl_value k = project(g, "key", x, p->key_weight, p->key_bias, none);
    const attncl_value v = project(g, "value", x, p->value_weight, p->value_bias, none);
    const attncl_value y = attend_step(g, n_heads, limit, q, k, v, position);
    return project(g, "output", y, p->output_weight, p->output_bias, residual);
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
