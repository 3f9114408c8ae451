// SPDX-License-Identifier: MIT
//
// Attention-free transformer layers.  One op serves all kinds: AFT-full has a window as long as the
// table, AFT-simple a window of 0.

#include <inttypes.h>

#include "layer/layer.h"

static bool read_desc(attncl_graph *g, const attncl_aft_desc *given, attncl_aft_desc *ret)
{
    *ret = (attncl_aft_desc)ATTNCL_AFT_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_aft_desc, ret, given))
        return false;
    if (ret->kind != ATTNCL_AFT_LOCAL && ret->kind != ATTNCL_AFT_FULL &&
        ret->kind != ATTNCL_AFT_SIMPLE && ret->kind != ATTNCL_AFT_CONV)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "aft kind %d is unknown", (int)ret->kind);
    else if (ret->kind == ATTNCL_AFT_LOCAL && ret->window < 0)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "window is %" PRId64 ", must be at least 0",
                   ret->window);
    return !attncl__graph_failed(g);
}

// Kinds without heads: sets the op's window, and makes *pos_bias null if it is unused.  False: the
// graph has failed.
static bool read_window(attncl_graph *g, const attncl_aft_desc *desc, attncl_value *pos_bias,
                        int32_t *window_ret)
{
    if (desc->kind == ATTNCL_AFT_SIMPLE || (desc->kind == ATTNCL_AFT_LOCAL && desc->window == 0)) {
        *pos_bias = ATTNCL_NONE_VALUE;
        *window_ret = 0;
        return true;
    }

    struct tensor_desc table;
    if (!attncl__layer_axes(g, *pos_bias, "pos_bias", 2, "[n, n]", &table))
        return false;
    if (table.dim[0] != table.dim[1] || table.dim[0] > INT32_MAX)
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "pos_bias has shape %s, expected [n, n]", SHAPE(&table));
    const bool whole = desc->kind == ATTNCL_AFT_FULL || desc->window > table.dim[0];
    *window_ret = (int32_t)(whole ? table.dim[0] : desc->window);
    return !attncl__graph_failed(g);
}

attncl_value attncl_aft_mix(attncl_graph *g, const attncl_aft_desc *desc, attncl_value q,
                            attncl_value k, attncl_value v, attncl_value pos_bias,
                            attncl_value mask)
{
    attncl_aft_desc d;
    if (!read_desc(g, desc, &d))
        return ATTNCL_NONE_VALUE;
    if (d.causal && attncl__given(mask))
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "causal and a mask at once");
    struct aft_fwd_params params = {.per_head = d.kind == ATTNCL_AFT_CONV, .causal = d.causal != 0};
    if (!params.per_head && !read_window(g, &d, &pos_bias, &params.window))
        return ATTNCL_NONE_VALUE;
    return attncl__graph_add(g, &attncl__op_aft_fwd, &params, IN(q, k, v, pos_bias, mask));
}

// Adds the query, key and value projections, in scopes named after the layer's parameters.
static void project_inputs(attncl_graph *g, const attncl_aft_params *p,
                           const attncl_attention_inputs *in, attncl_value qkv[3])
{
    const attncl_value none = ATTNCL_NONE_VALUE;
    qkv[0] = attncl__layer_project(g, "query", in->query, p->query_weight, p->query_bias, none);
    qkv[1] = attncl__layer_project(g, "key", in->key, p->key_weight, p->key_bias, none);
    qkv[2] = attncl__layer_project(g, "value", in->value, p->value_weight, p->value_bias, none);
}

attncl_value attncl_aft(attncl_graph *g, const attncl_aft_desc *desc,
                        const attncl_aft_params *params, const attncl_attention_inputs *inputs)
{
    attncl_aft_params p = ATTNCL_AFT_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value qkv[3];
    if (!LAYER_STRUCT(g, attncl_aft_params, &p, params) ||
        !LAYER_STRUCT(g, attncl_attention_inputs, &in, inputs) ||
        !attncl__layer_check_absent(g, in.valid_lens, "valid_lens") ||
        !attncl__layer_check_absent(g, in.bias, "bias"))
        return ATTNCL_NONE_VALUE;
    project_inputs(g, &p, &in, qkv);
    const attncl_value y = attncl_aft_mix(g, desc, qkv[0], qkv[1], qkv[2], p.pos_bias, in.mask);
    return attncl__layer_project(g, "output", y, p.output_weight, p.output_bias, in.residual);
}

// AFT-conv: its window is the past positions with a bias plus the current one.
static bool read_filter_window(attncl_graph *g, attncl_value pos_bias, int32_t *window_ret)
{
    struct tensor_desc table;
    if (!attncl__layer_axes(g, pos_bias, "w", 2, "[H, s]", &table))
        return false;
    if (table.dim[1] > INT32_MAX)
        GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "w has shape %s, too long", SHAPE(&table));
    *window_ret = (int32_t)((table.dim[1] + 1) / 2);
    return !attncl__graph_failed(g);
}

// Decoding state per batch entry and channel: (maximum, denominator, numerator) over the keys that
// have left the window, and the last `window` keys and values in two rings.
struct decode_state {
    int32_t per_head, window;
    attncl_value sums, ring_k, ring_v;
};

// dtype: of the rings; width: channels of all batch entries; *pos_bias becomes null if it is unused.
// False: the graph has failed.
static bool make_state(attncl_graph *g, const attncl_aft_desc *desc, attncl_dtype dtype,
                       int64_t width, attncl_value *pos_bias, struct decode_state *s)
{
    *s = (struct decode_state){.per_head = desc->kind == ATTNCL_AFT_CONV};
    if (!(s->per_head ? read_filter_window(g, *pos_bias, &s->window)
                      : read_window(g, desc, pos_bias, &s->window)))
        return false;
    const int64_t sums_dim[2] = {3, width}, ring_dim[2] = {s->window > 0 ? s->window : 1, width};
    s->sums = attncl_graph_state(g, "sums", ATTNCL_F32, 2, sums_dim);
    s->ring_k = attncl_graph_state(g, "ring_k", dtype, 2, ring_dim);
    s->ring_v = attncl_graph_state(g, "ring_v", dtype, 2, ring_dim);
    return !attncl__graph_failed(g);
}

// Adds the op for one position; returns y.
static attncl_value mix_step(attncl_graph *g, const attncl_aft_desc *desc, attncl_dtype dtype,
                             const attncl_value qkv[3], attncl_value pos_bias,
                             attncl_value position)
{
    struct decode_state s;
    struct tensor_desc d;
    if (!attncl__layer_axes(g, qkv[0], "x", 2, "[B, C]", &d) ||
        !make_state(g, desc, dtype, attncl__desc_count(&d), &pos_bias, &s))
        return ATTNCL_NONE_VALUE;
    const struct aft_step_fwd_params params = {.per_head = s.per_head, .window = s.window};
    return attncl__graph_add(
        g, &attncl__op_aft_step_fwd, &params,
        IN(qkv[0], qkv[1], qkv[2], pos_bias, position, s.sums, s.ring_k, s.ring_v));
}

// Adds the ops for all positions of a prompt; returns y.
static attncl_value mix_prompt(attncl_graph *g, attncl_aft_desc desc, attncl_dtype dtype,
                               attncl_value qkv[3], attncl_value pos_bias, attncl_value last)
{
    attncl_value table = pos_bias;
    struct decode_state s;
    struct tensor_desc d;
    if (!attncl__layer_axes(g, qkv[0], "x", 3, "[T, B, C]", &d) ||
        !make_state(g, &desc, dtype, d.dim[1] * d.dim[2], &table, &s))
        return ATTNCL_NONE_VALUE;
    for (int i = 1; i < 3 && attncl__is_16_bit(dtype); ++i)
        qkv[i] = attncl__graph_add(g, &attncl__op_round_fwd,
                                   &(struct round_fwd_params){(int32_t)dtype}, IN(qkv[i]));
    const struct aft_prefill_fwd_params kept = {.per_head = s.per_head, .window = s.window};
    attncl__graph_add(g, &attncl__op_aft_prefill_fwd, &kept,
                      IN(qkv[1], qkv[2], last, s.sums, s.ring_k, s.ring_v));
    desc.causal = 1;
    return attncl_aft_mix(g, &desc, qkv[0], qkv[1], qkv[2], pos_bias, ATTNCL_NONE_VALUE);
}

attncl_value attncl__aft_decode(attncl_graph *g, const attncl_aft_desc *desc,
                                const attncl_aft_params *params, attncl_dtype dtype, attncl_value x,
                                const struct decode_at *at, attncl_value residual)
{
    const attncl_attention_inputs in = {.query = x, .key = x, .value = x};
    attncl_aft_params p = ATTNCL_AFT_PARAMS_INIT;
    attncl_aft_desc d;
    attncl_value qkv[3];
    if (!LAYER_STRUCT(g, attncl_aft_params, &p, params) || !read_desc(g, desc, &d))
        return ATTNCL_NONE_VALUE;
    project_inputs(g, &p, &in, qkv);
    const attncl_value y = attncl__given(at->last)
                               ? mix_prompt(g, d, dtype, qkv, p.pos_bias, at->last)
                               : mix_step(g, &d, dtype, qkv, p.pos_bias, at->position);
    return attncl__layer_project(g, "output", attncl__layer_row_at(g, y, at->row), p.output_weight,
                                 p.output_bias, residual);
}

attncl_value attncl_aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                             const attncl_aft_params *params, attncl_value x, attncl_value position,
                             attncl_value residual)
{
    const struct decode_at at = {.position = position};
    return attncl__aft_decode(g, desc, params, ATTNCL_F32, x, &at, residual);
}
