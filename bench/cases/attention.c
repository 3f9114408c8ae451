// SPDX-License-Identifier: MIT
//
// Softmax attention.  Full-size runs are checked on the last batch entry, the fused attention on
// all positions of its last head.

#include <math.h>

#include "cases/define.h"

enum { N_CHECKED_POINTS = 64 };

static attncl_value build_attention(struct case_data *t, const struct sizes *s)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const int64_t width = s->C / s->heads;
    const attncl_value q = case_input(t, "q", 2, DIMS(s->B, s->heads, s->T, width));
    const attncl_value k = case_input(t, "k", 2, DIMS(s->B, s->heads, s->T, width));
    const attncl_value v = case_input(t, "v", 2, DIMS(s->B, s->heads, s->T, width));

    const attncl_attention_inputs qkv = {
        .struct_size = sizeof qkv, .query = q, .key = k, .value = v};
    desc.causal = s->causal;
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const attncl_value y = attncl_attention(t->graph, &desc, &qkv, NULL);
    return attncl_merge_heads(t->graph, y, ATTNCL_LAYOUT_BATCH_FIRST);
}

static void check_attention(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const int64_t width = s->C / s->heads;
    const struct part channels = {s->C - width, width, 1};
    const struct ref_attention a = {.scale = 1 / sqrt((double)width), .causal = s->causal};
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, 1, s->T, s->T));
    struct host *y = host_new(ATTNCL_F32, DIMS(1, s->T, width));

    ref_attention_weights(&a, PART(t, "q", LAST, LAST, ALL, ALL),
                          PART(t, "k", LAST, LAST, ALL, ALL), weights);
    ref_attention_mix(weights, PART(t, "v", LAST, LAST, ALL, ALL), false, y);
    check_compare(c, (double)(width + s->T), PART(t, "y", LAST, ALL, channels), y);
}

PLAIN_FAMILY(attention, SUITE_OP)

// labml's: sequence first, every map with a bias.
static attncl_value build_mha_labml(struct case_data *t, const struct sizes *s)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_mha_params params = {.struct_size = sizeof params,
                                      MIXING_FIELDS("", "", MAP, ARRAY)};

    const attncl_attention_inputs in = {.struct_size = sizeof in, .query = x, .key = x, .value = x};
    desc.causal = s->causal;
    return attncl_multi_head_attention(t->graph, &desc, &params, s->heads, &in, NULL);
}

#define MAPS_FIELDS(MAP)                                                                           \
    .query_weight = MAP("query.weight", s->C, s->C), .key_weight = MAP("key.weight", s->C, s->C),  \
    .value_weight = MAP("value.weight", s->C, s->C),                                               \
    .output_weight = MAP("output.weight", s->C, s->C)

// d2l's: batch first, no biases, lengths.
static attncl_value build_mha_d2l(struct case_data *t, const struct sizes *s)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const attncl_value x = case_input(t, "x", 1, DIMS(s->B, s->T, s->C));
    const attncl_value lens = case_indices(t, "valid_lens", 1, s->T + 1, DIMS(s->B));
    const attncl_mha_params params = {.struct_size = sizeof params, MAPS_FIELDS(MAP)};

    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = x, .key = x, .value = x, .valid_lens = lens};
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    return attncl_multi_head_attention(t->graph, &desc, &params, s->heads, &in, NULL);
}

static void check_mha(const struct case_data *t, const struct sizes *s, struct check *c,
                      bool time_first, const struct ref_mha *params, const struct host *lens)
{
    const struct part first = time_first ? ALL : LAST, second = time_first ? LAST : ALL;
    const struct ref_attention a = {.causal = s->causal, .valid_lens = lens};
    const struct host *x = PART(t, "x", first, second, ALL);
    struct host *y = host_like(x);
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, s->heads, s->T, s->T));

    ref_multi_head_attention(params, a, s->heads, time_first, x, x, x, y, weights);
    check_compare(c, (double)(3 * s->C + s->T), PART(t, "y", first, second, ALL), y);
}

static void check_mha_labml(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct ref_mha params = {MIXING_FIELDS("", "", WHOLE, WHOLE)};

    check_mha(t, s, c, true, &params, NULL);
}

static void check_mha_d2l(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct ref_mha params = {MAPS_FIELDS(WHOLE)};

    check_mha(t, s, c, false, &params, PART(t, "valid_lens", LAST));
}

PLAIN_FAMILY(mha_labml, SUITE_LAYER)
PLAIN_FAMILY(mha_d2l, SUITE_LAYER)

// With the projections of queries and keys, as d2l's layer has them.
static attncl_value build_additive_attention(struct case_data *t, const struct sizes *s)
{
    attncl_graph *g = t->graph;
    const attncl_value queries = case_input(t, "queries", 1, DIMS(s->B, s->T, s->C));
    const attncl_value keys = case_input(t, "keys", 1, DIMS(s->B, s->S, s->C));
    const attncl_value values = case_input(t, "values", 1, DIMS(s->B, s->S, s->C));
    const attncl_value lens = case_indices(t, "valid_lens", 1, s->S + 1, DIMS(s->B));
    const attncl_value q = attncl_linear(g, queries, MAP("W_q", s->C, s->C), ATTNCL_NONE_VALUE);
    const attncl_value k = attncl_linear(g, keys, MAP("W_k", s->C, s->C), ATTNCL_NONE_VALUE);
    const attncl_value w = MAP("w_v", 1, s->C);

    return attncl_additive_attention(g, q, k, values, w, lens, NULL);
}

static void check_additive_attention(const struct case_data *t, const struct sizes *s,
                                     struct check *c)
{
    const struct host *q = define_linear(PART(t, "queries", LAST, ALL, ALL), WHOLE("W_q"), NULL);
    const struct host *k = define_linear(PART(t, "keys", LAST, ALL, ALL), WHOLE("W_k"), NULL);
    struct host *y = host_new(ATTNCL_F32, DIMS(1, s->T, s->C));
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, s->T, s->S));

    ref_additive_attention(q, k, PART(t, "values", LAST, ALL, ALL), WHOLE("w_v"),
                           PART(t, "valid_lens", LAST), y, weights);
    check_compare(c, (double)(2 * s->C + s->S), PART(t, "y", LAST, ALL, ALL), y);
}

PLAIN_FAMILY(additive_attention, SUITE_LAYER)

// d2l's kernel regression: N training points, M to predict.
static attncl_value build_attention_pooling(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = case_input(t, "x_train", 5, DIMS(s->N));
    const attncl_value y = case_input(t, "y_train", 2, DIMS(s->N));
    const attncl_value at = case_input(t, "x_val", 5, DIMS(s->M));

    return attncl_attention_pooling(t->graph, ATTNCL_POOL_GAUSSIAN, 1, x, y, at, NULL);
}

static void check_attention_pooling(const struct case_data *t, const struct sizes *s,
                                    struct check *c)
{
    const struct part points = part_spread(N_CHECKED_POINTS, s->M);
    const struct host *x = WHOLE("x_train"), *at = PART(t, "x_val", points);
    struct host *y = host_like(at);

    ref_attention_pooling_fwd(ATTNCL_POOL_GAUSSIAN, 1, x, WHOLE("y_train"), at, y,
                              host_new(ATTNCL_F32, DIMS(x->count, at->count)));
    check_compare(c, (double)s->N, PART(t, "y", points), y);
}

PLAIN_FAMILY(attention_pooling, SUITE_LAYER)
