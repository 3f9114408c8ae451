// SPDX-License-Identifier: MIT
//
// Softmax attention.  Full-size runs are checked on the last batch entry, the fused attention on
// all positions of its last head.

#include <math.h>

#include "cases/define.h"

enum { N_CHECKED_POINTS = 64 };

static void build_attention(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
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
    attncl_graph_output(t->graph, "y", attncl_merge_heads(t->graph, y, ATTNCL_LAYOUT_BATCH_FIRST));
}

static void check_attention(const struct case_data *t, struct check *c)
{
    const struct sizes *s = &t->c->sizes;
    const int64_t width = s->C / s->heads;
    const struct part batch = part_one(s->B - 1), head = part_one(s->heads - 1);
    const struct part channels = {s->C - width, width, 1};
    const struct ref_attention a = {.scale = 1 / sqrt((double)width), .causal = s->causal};
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, 1, s->T, s->T));
    struct host *y = host_new(ATTNCL_F32, DIMS(1, s->T, width));

    ref_attention_weights(&a, PART(t, "q", batch, head, ALL, ALL),
                          PART(t, "k", batch, head, ALL, ALL), weights);
    ref_attention_mix(weights, PART(t, "v", batch, head, ALL, ALL), false, y);
    check_compare(c, (double)(width + s->T), PART(t, "y", batch, ALL, channels), y);
}

const struct family bench_attention = {
    .name = "attention", .build = build_attention, .check = check_attention};

// labml's: sequence first, every map with a bias.
static void build_mha_labml(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->C));
    const attncl_mha_params params = {.struct_size = sizeof params,
                                      MIXING_FIELDS("", "", MAP, ARRAY)};

    const attncl_attention_inputs in = {.struct_size = sizeof in, .query = x, .key = x, .value = x};
    desc.causal = s->causal;
    attncl_graph_output(t->graph, "y",
                        attncl_multi_head_attention(t->graph, &desc, &params, s->heads, &in, NULL));
}

#define MAPS_FIELDS(MAP)                                                                           \
    .query_weight = MAP("query.weight", s->C, s->C), .key_weight = MAP("key.weight", s->C, s->C),  \
    .value_weight = MAP("value.weight", s->C, s->C),                                               \
    .output_weight = MAP("output.weight", s->C, s->C)

// d2l's: batch first, no biases, lengths.
static void build_mha_d2l(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    const attncl_value x = case_input(t, "x", 1, DIMS(s->B, s->T, s->C));
    const attncl_value lens = case_indices(t, "valid_lens", 1, s->T + 1, DIMS(s->B));
    const attncl_mha_params params = {.struct_size = sizeof params, MAPS_FIELDS(MAP)};

    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = x, .key = x, .value = x, .valid_lens = lens};
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    attncl_graph_output(t->graph, "y",
                        attncl_multi_head_attention(t->graph, &desc, &params, s->heads, &in, NULL));
}

static void check_mha(const struct case_data *t, struct check *c, bool time_first,
                      const struct ref_mha *params, const struct host *lens)
{
    const struct sizes *s = &t->c->sizes;
    const struct part batch = part_one(s->B - 1);
    const struct part first = time_first ? ALL : batch, second = time_first ? batch : ALL;
    const struct ref_attention a = {.causal = s->causal, .valid_lens = lens};
    const struct host *x = PART(t, "x", first, second, ALL);
    struct host *y = host_like(x);
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, s->heads, s->T, s->T));

    ref_multi_head_attention(params, a, s->heads, time_first, x, x, x, y, weights);
    check_compare(c, (double)(3 * s->C + s->T), PART(t, "y", first, second, ALL), y);
}

static void check_mha_labml(const struct case_data *t, struct check *c)
{
    const struct ref_mha params = {MIXING_FIELDS("", "", WHOLE, WHOLE)};

    check_mha(t, c, true, &params, NULL);
}

static void check_mha_d2l(const struct case_data *t, struct check *c)
{
    const struct ref_mha params = {MAPS_FIELDS(WHOLE)};

    check_mha(t, c, false, &params, PART(t, "valid_lens", part_one(t->c->sizes.B - 1)));
}

const struct family bench_mha_labml = {
    .name = "mha_labml", .suite = SUITE_LAYER, .build = build_mha_labml, .check = check_mha_labml};
const struct family bench_mha_d2l = {
    .name = "mha_d2l", .suite = SUITE_LAYER, .build = build_mha_d2l, .check = check_mha_d2l};

// With the projections of queries and keys, as d2l's layer has them.
static void build_additive(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_graph *g = t->graph;
    const attncl_value queries = case_input(t, "queries", 1, DIMS(s->B, s->T, s->C));
    const attncl_value keys = case_input(t, "keys", 1, DIMS(s->B, s->S, s->C));
    const attncl_value values = case_input(t, "values", 1, DIMS(s->B, s->S, s->C));
    const attncl_value lens = case_indices(t, "valid_lens", 1, s->S + 1, DIMS(s->B));
    const attncl_value q = attncl_linear(g, queries, MAP("W_q", s->C, s->C), ATTNCL_NONE_VALUE);
    const attncl_value k = attncl_linear(g, keys, MAP("W_k", s->C, s->C), ATTNCL_NONE_VALUE);
    const attncl_value w = MAP("w_v", 1, s->C);

    attncl_graph_output(g, "y", attncl_additive_attention(g, q, k, values, w, lens, NULL));
}

static void check_additive(const struct case_data *t, struct check *c)
{
    const struct sizes *s = &t->c->sizes;
    const struct part batch = part_one(s->B - 1);
    const struct host *q =
        define_linear(PART(t, "queries", batch, ALL, ALL), case_whole(t, "W_q"), NULL);
    const struct host *k =
        define_linear(PART(t, "keys", batch, ALL, ALL), case_whole(t, "W_k"), NULL);
    struct host *y = host_new(ATTNCL_F32, DIMS(1, s->T, s->C));
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, s->T, s->S));

    ref_additive_attention(q, k, PART(t, "values", batch, ALL, ALL), case_whole(t, "w_v"),
                           PART(t, "valid_lens", batch), y, weights);
    check_compare(c, (double)(2 * s->C + s->S), PART(t, "y", batch, ALL, ALL), y);
}

const struct family bench_additive_attention = {.name = "additive_attention",
                                                .suite = SUITE_LAYER,
                                                .build = build_additive,
                                                .check = check_additive};

// d2l's kernel regression: N training points, M to predict.
static void build_pooling(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const attncl_value x = case_input(t, "x_train", 5, DIMS(s->N));
    const attncl_value y = case_input(t, "y_train", 2, DIMS(s->N));
    const attncl_value at = case_input(t, "x_val", 5, DIMS(s->M));

    attncl_graph_output(
        t->graph, "y", attncl_attention_pooling(t->graph, ATTNCL_POOL_GAUSSIAN, 1, x, y, at, NULL));
}

static void check_pooling(const struct case_data *t, struct check *c)
{
    const struct part points = part_spread(N_CHECKED_POINTS, t->c->sizes.M);
    const struct host *x = case_whole(t, "x_train"), *at = PART(t, "x_val", points);
    struct host *y = host_like(at);

    ref_attention_pooling_fwd(ATTNCL_POOL_GAUSSIAN, 1, x, case_whole(t, "y_train"), at, y,
                              host_new(ATTNCL_F32, DIMS(x->count, at->count)));
    check_compare(c, (double)t->c->sizes.N, PART(t, "y", points), y);
}

const struct family bench_attention_pooling = {.name = "attention_pooling",
                                               .suite = SUITE_LAYER,
                                               .build = build_pooling,
                                               .check = check_pooling};
