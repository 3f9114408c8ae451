// SPDX-License-Identifier: MIT
//
// Softmax attention and multi-head attention.  Heads are views: splitting a projection
// takes no copy, nor does merging them, as the op stores its result in the merged layout.

#include <inttypes.h>
#include <math.h>

#include "layer/layer.h"
#include "op/attention/q8_row.h"

static bool read_desc(attncl_graph *g, const attncl_attention_desc *given,
                      attncl_attention_desc *ret)
{
    *ret = (attncl_attention_desc)ATTNCL_ATTENTION_DESC_INIT;
    if ((given && !LAYER_STRUCT(g, attncl_attention_desc, ret, given)) ||
        !attncl__layer_check_layout(g, ret->layout))
        return false;
    if (!isfinite(ret->scale))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "scale is %g, must be finite", (double)ret->scale);
    return !attncl__graph_failed(g);
}

// The op needs contiguous rows: copies x if its last axis is strided.
static attncl_value make_rows_contiguous(attncl_graph *g, attncl_value x)
{
    const struct tensor_desc *d = attncl__graph_failed(g) ? NULL : attncl__graph_desc(g, x);
    if (!d || d->rank == 0 || d->dim[d->rank - 1] <= 1 || d->stride[d->rank - 1] == 1)
        return x;
    return attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(x));
}

static float choose_scale(const attncl_attention_desc *desc, int64_t width)
{
    return desc->scale != 0 ? desc->scale : (float)(1 / sqrt((double)width));
}

// Adds attention of heads [B, H, ., .]; `desc` has been checked.  position [1]: the first query's, among
// the keys; null: the last query is at the last key.
static attncl_value attend(attncl_graph *g, const attncl_attention_desc *desc,
                           const attncl_attention_inputs *in, attncl_value position,
                           attncl_value *weights_ret)
{
    static const int from_tbhe[] = {1, 2, 0, 3}, from_bthe[] = {0, 2, 1, 3};
    struct dropout_fwd_params mask;
    attncl_dropout_desc dropout;
    struct tensor_desc d;
    if (!attncl__layer_axes(g, in->query, "q", 4, "[B, H, T, D]", &d) ||
        !attncl__layer_dropout(g, desc->dropout, &dropout, &mask) ||
        !attncl__layer_check_absent(g, dropout.residual, "the residual of a dropout of weights") ||
        !attncl__layer_check_absent(g, dropout.position, "the position of a dropout of weights"))
        return ATTNCL_NONE_VALUE;
    const struct attention_fwd_params params = {
        .scale = choose_scale(desc, d.dim[3]),
        .causal = desc->causal != 0,
        .window = desc->window,
        .layout = desc->layout,
        .want_weights = weights_ret != NULL,
        .dropout = mask,
        .softcap = desc->softcap,
        .hard_lens = desc->hard_lens != 0,
    };
    const attncl_value y = attncl__graph_add(
        g, &attncl__op_attention_fwd, &params,
        IN(make_rows_contiguous(g, in->query), make_rows_contiguous(g, in->key),
           make_rows_contiguous(g, in->value), in->mask, in->valid_lens, in->bias, desc->slopes,
           position, mask.p > 0 ? dropout.step : ATTNCL_NONE_VALUE));
    if (weights_ret)
        *weights_ret = attncl__graph_result(g, y, 1);
    return attncl_permute(g, y, desc->layout == ATTNCL_LAYOUT_TIME_FIRST ? from_tbhe : from_bthe);
}

attncl_value attncl_attention(attncl_graph *g, const attncl_attention_desc *desc,
                              const attncl_attention_inputs *inputs, attncl_value *weights_ret)
{
    attncl_attention_desc d;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!read_desc(g, desc, &d) || !LAYER_STRUCT(g, attncl_attention_inputs, &in, inputs) ||
        !attncl__layer_check_absent(g, in.residual, "residual") ||
        !attncl__layer_check_absent(g, d.rotary, "rotary"))
        return ATTNCL_NONE_VALUE;
    return attend(g, &d, &in, ATTNCL_NONE_VALUE, weights_ret);
}

attncl_value attncl_split_heads(attncl_graph *g, attncl_value x, int64_t n_heads,
                                attncl_layout layout)
{
    const int b = layout == ATTNCL_LAYOUT_TIME_FIRST ? 1 : 0, t = 1 - b;
    struct tensor_desc d;
    if (!attncl__layer_check_layout(g, layout) ||
        !attncl__layer_axes(g, x, "x", 3, b ? "[T, B, C]" : "[B, T, C]", &d))
        return ATTNCL_NONE_VALUE;
    if (n_heads < 1 || d.dim[2] % n_heads != 0) // a width of 0 may have heads
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
    if (!attncl__layer_check_layout(g, layout) ||
        !attncl__layer_axes(g, x, "x", 4, "[B, H, T, E]", &d))
        return ATTNCL_NONE_VALUE;
    const bool time_first = layout == ATTNCL_LAYOUT_TIME_FIRST;
    const int64_t dim[3] = {d.dim[time_first ? 2 : 0], d.dim[time_first ? 0 : 2],
                            d.dim[1] * d.dim[3]};
    return attncl_reshape(g, attncl_permute(g, x, time_first ? to_tbhe : to_bthe), 3, dim);
}

static attncl_value swap_first_axes(attncl_graph *g, attncl_value x)
{
    return attncl_permute(g, x, (const int[]){1, 0, 2, 3});
}

static float norm_eps(const attncl_attention_desc *desc)
{
    return desc->qk_norm_eps != 0 ? desc->qk_norm_eps : 1e-6f;
}

// Normalises and rotates the heads of x, [T, B, C] or [B, T, C].
static attncl_value rotate_heads(attncl_graph *g, const attncl_attention_desc *desc, int64_t width,
                                 attncl_value norm, attncl_value x)
{
    const bool swaps = desc->layout == ATTNCL_LAYOUT_BATCH_FIRST;
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d) || d.rank != 3)
        return x;
    x = attncl_reshape(g, x, 4, (const int64_t[]){d.dim[0], d.dim[1], d.dim[2] / width, width});
    if (attncl__given(norm))
        x = attncl_rms_norm(g, x, norm, norm_eps(desc));
    if (attncl__given(desc->rotary)) {
        x = swaps ? swap_first_axes(g, x) : x;
        x = attncl_rotary(g, x, desc->rotary, desc->rotary_pairs, ATTNCL_NONE_VALUE);
        x = swaps ? swap_first_axes(g, x) : x;
    }
    return attncl_reshape(g, x, d.rank, d.dim);
}

// Adds the query, key and value projections, in scopes named after the layer's parameters.
static void project_inputs(attncl_graph *g, const attncl_mha_params *p, attncl_attention_inputs *in)
{
    const attncl_value none = ATTNCL_NONE_VALUE;
    in->query = attncl__layer_project(g, "query", in->query, p->query_weight, p->query_bias, none);
    in->key = attncl__layer_project(g, "key", in->key, p->key_weight, p->key_bias, none);
    in->value = attncl__layer_project(g, "value", in->value, p->value_weight, p->value_bias, none);
}

// Normalises and rotates the heads of queries and keys.
static void rotate_inputs(attncl_graph *g, const attncl_attention_desc *desc,
                          const attncl_mha_params *p, int64_t n_heads, attncl_attention_inputs *in)
{
    struct tensor_desc d;
    if ((!attncl__given(p->query_norm) && !attncl__given(p->key_norm) &&
         !attncl__given(desc->rotary)) ||
        !attncl__layer_shape(g, in->query, "query", &d) ||
        !attncl__layer_check_heads(g, n_heads, d.dim[d.rank - 1]))
        return;
    const int64_t width = d.dim[d.rank - 1] / n_heads;
    in->query = rotate_heads(g, desc, width, p->query_norm, in->query);
    in->key = rotate_heads(g, desc, width, p->key_norm, in->key);
}

// Splits projected inputs into heads.  Key and value heads are as wide as the query's, maybe fewer.
static void split_inputs(attncl_graph *g, int64_t n_heads, attncl_layout layout,
                         attncl_attention_inputs *in)
{
    struct tensor_desc q, k;
    in->query = attncl_split_heads(g, in->query, n_heads, layout);
    const bool fits = attncl__layer_shape(g, in->query, "query", &q) &&
                      attncl__layer_shape(g, in->key, "key", &k) && k.rank == 3 && q.dim[3] > 0 &&
                      k.dim[2] % q.dim[3] == 0;
    const int64_t n_kv_heads = fits ? k.dim[2] / q.dim[3] : n_heads; // the op refuses other widths
    in->key = attncl_split_heads(g, in->key, n_kv_heads, layout);
    in->value = attncl_split_heads(g, in->value, n_kv_heads, layout);
}

attncl_value attncl_multi_head_attention(attncl_graph *g, const attncl_attention_desc *desc,
                                         const attncl_mha_params *params, int64_t n_heads,
                                         const attncl_attention_inputs *inputs,
                                         attncl_value *weights_ret)
{
    attncl_mha_params p = ATTNCL_MHA_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_attention_desc d;
    if (weights_ret)
        *weights_ret = ATTNCL_NONE_VALUE;
    if (!LAYER_STRUCT(g, attncl_mha_params, &p, params) ||
        !LAYER_STRUCT(g, attncl_attention_inputs, &in, inputs) || !read_desc(g, desc, &d))
        return ATTNCL_NONE_VALUE;
    project_inputs(g, &p, &in);
    rotate_inputs(g, &d, &p, n_heads, &in);
    split_inputs(g, n_heads, d.layout, &in);
    const attncl_value y =
        attncl_merge_heads(g, attend(g, &d, &in, ATTNCL_NONE_VALUE, weights_ret), d.layout);
    return attncl__layer_project(g, "output", y, p.output_weight, p.output_bias, in.residual);
}

// Keys and values of all positions, and the heads that read them.
struct caches {
    const struct cache_desc *of;
    int64_t n_heads, width, n_rows;
    bool ring; // fewer rows than positions: position t is in row t mod n_rows
    attncl_value keys, values;
};

// Creates the caches for projected inputs [.., B, C].  False: the graph has failed.
static bool make_caches(attncl_graph *g, const struct cache_desc *of, int64_t n_heads,
                        const attncl_attention_inputs *in, struct caches *ret)
{
    const attncl_dtype dtype = of->dtype == ATTNCL_Q8 ? ATTNCL_U8 : of->dtype;
    const int64_t window = attncl__given(of->desc->slopes) ? 0 : of->desc->window;
    struct tensor_desc q, k;
    if (!attncl__layer_shape(g, in->query, "query", &q) ||
        !attncl__layer_shape(g, in->key, "key", &k) ||
        !attncl__layer_check_heads(g, n_heads, q.dim[q.rank - 1]))
        return false;
    *ret = (struct caches){.of = of, .n_heads = n_heads, .width = q.dim[q.rank - 1] / n_heads};
    ret->ring = window > 0 && window < of->limit;
    ret->n_rows = ret->ring ? window : of->limit;
    const int64_t n = k.dim[k.rank - 1];
    const int64_t row = ret->width > 0 ? attncl__cache_row(dtype, n, n / ret->width) : n;
    const int64_t dim[3] = {ret->n_rows, k.dim[k.rank - 2], row};
    ret->keys = attncl_graph_state(g, "keys", dtype, 3, dim);
    ret->values = attncl_graph_state(g, "values", dtype, 3, dim);
    return true;
}

// Adds the op for one position; returns y [B, C].
static attncl_value attend_step(attncl_graph *g, const attncl_mha_params *p, const struct caches *c,
                                const attncl_attention_inputs *in, attncl_value position)
{
    const attncl_attention_desc *desc = c->of->desc;
    const struct attention_step_fwd_params params = {
        .scale = choose_scale(desc, c->width),
        .n_heads = (int32_t)c->n_heads,
        .window = desc->window < c->n_rows ? (int32_t)desc->window : 0,
        .softcap = desc->softcap,
        .half = desc->rotary_pairs == ATTNCL_ROTARY_HALVES,
        .eps = norm_eps(desc),
        .ring = c->ring,
    };
    return attncl__graph_add(g, &attncl__op_attention_step_fwd, &params,
                             IN(in->query, in->key, in->value, position, c->keys, c->values,
                                desc->slopes, p->query_norm, p->key_norm, desc->rotary));
}

// Stores rows of keys and values in the caches, prepared as by the step.  in becomes all rows so far, as they are
// stored, or of a ring's, and the prepared queries, if there are any.  Returns the first query's position among them.
static attncl_value store_rows(attncl_graph *g, const attncl_mha_params *p, const struct caches *c,
                               attncl_value position, attncl_attention_inputs *in)
{
    const attncl_value rotary = c->of->desc->rotary, none = ATTNCL_NONE_VALUE;
    const struct attention_append_fwd_params params = {
        .width = (int32_t)c->width,
        .half = c->of->desc->rotary_pairs == ATTNCL_ROTARY_HALVES,
        .eps = norm_eps(c->of->desc),
    };
    const bool prepares =
        attncl__given(in->query) && (attncl__given(rotary) || attncl__given(p->query_norm));
    const bool is_float = c->of->dtype == ATTNCL_F32 && !c->ring,
               is_behind = attncl__given(position);
    const int64_t n = attncl_graph_shape(g, in->key).dim[0];
    const attncl_value kept = attncl__graph_add(
        g, &attncl__op_attention_append_fwd, &params,
        IN(in->key, in->value, position, c->keys, c->values, prepares ? in->query : none,
           p->query_norm, p->key_norm, rotary, c->ring ? c->of->last : none));
    attncl_value *const rows[] = {&in->key, &in->value};
    const attncl_value all[] = {c->keys, c->values};
    for (int i = 0; i < 2; ++i)
        *rows[i] = !is_float   ? attncl__graph_result(g, kept, i)
                   : is_behind ? all[i]
                               : attncl_slice(g, all[i], 0, 0, n);
    if (prepares)
        in->query = attncl__graph_result(g, kept, 2);
    return c->ring && is_behind ? attncl__graph_result(g, kept, 3) : position;
}

// Adds the ops for a prompt; returns y [T, B, C].  position [1]: of its first row; null: 0.
static attncl_value attend_prompt(attncl_graph *g, const attncl_mha_params *p,
                                  const struct caches *c, attncl_attention_inputs in,
                                  attncl_value position)
{
    attncl_attention_desc desc = *c->of->desc;
    desc.causal = 1;
    desc.layout = ATTNCL_LAYOUT_TIME_FIRST;
    desc.dropout = NULL;
    position = store_rows(g, p, c, position, &in);
    split_inputs(g, c->n_heads, desc.layout, &in);
    return attncl_merge_heads(g, attend(g, &desc, &in, position, NULL), desc.layout);
}

// Adds the ops for a prompt with one query [B, C], that of its row `row`; returns y [B, C].  The step stores this row again.
static attncl_value attend_row(attncl_graph *g, const attncl_mha_params *p, const struct caches *c,
                               const attncl_attention_inputs *in, attncl_value position)
{
    attncl_attention_inputs step = *in, stored = {.key = in->key, .value = in->value};
    step.key = attncl__layer_row_at(g, in->key, c->of->row);
    step.value = attncl__layer_row_at(g, in->value, c->of->row);
    store_rows(g, p, c, position, &stored);
    return attend_step(g, p, c, &step, c->of->last_position);
}

attncl_value attncl__multi_head_attention_decode(attncl_graph *g, const attncl_mha_params *params,
                                                 int64_t n_heads, const struct cache_desc *cache,
                                                 attncl_value x, attncl_value position,
                                                 attncl_value residual)
{
    attncl_attention_inputs in = {.key = x, .value = x};
    attncl_mha_params p = ATTNCL_MHA_PARAMS_INIT;
    struct caches caches;
    struct tensor_desc d;
    if (!LAYER_STRUCT(g, attncl_mha_params, &p, params) || !attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    in.query = attncl__layer_row_at(g, x, cache->row);
    project_inputs(g, &p, &in);
    if (!make_caches(g, cache, n_heads, &in, &caches))
        return ATTNCL_NONE_VALUE;
    if (d.rank == 3 && attncl__given(position))
        position = attncl_slice(g, position, 0, 0, 1);
    const attncl_value y = d.rank == 2 ? attend_step(g, &p, &caches, &in, position)
                           : attncl__given(cache->row)
                               ? attend_row(g, &p, &caches, &in, position)
                               : attend_prompt(g, &p, &caches, in, position);
    return attncl__layer_project(g, "output", y, p.output_weight, p.output_bias, residual);
}

attncl_value attncl_multi_head_attention_step(attncl_graph *g, const attncl_mha_params *params,
                                              int64_t n_heads, int64_t limit, attncl_value x,
                                              attncl_value position, attncl_value residual)
{
    const attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const struct cache_desc cache = {.limit = limit, .dtype = ATTNCL_F32, .desc = &desc};
    struct tensor_desc d;
    if (!attncl__layer_shape(g, position, "position", &d) ||
        !attncl__layer_axes(g, x, "x", 2, "[B, C]", &d))
        return ATTNCL_NONE_VALUE;
    return attncl__multi_head_attention_decode(g, params, n_heads, &cache, x, position, residual);
}
