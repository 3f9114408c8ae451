// SPDX-License-Identifier: MIT
//
// The feedback transformer over a whole sequence, the first version's joint scores.  Batch entries
// do not see each other: the last one is checked, at every position.

#include <stdio.h>

#include "cases/define.h"

enum { MAX_LAYERS = 16, NAME_BYTES = 64 };

static const char *name_of(int64_t layer, const char *part, char text[NAME_BYTES])
{
    snprintf(text, NAME_BYTES, "layers.%d.%s", (int)layer, part);
    return text;
}

static attncl_value vector(struct case_data *t, int64_t layer, const char *part, int64_t n)
{
    char text[NAME_BYTES];

    return case_weight(t, name_of(layer, part, text), 1, DIMS(n));
}

static attncl_value map(struct case_data *t, int64_t layer, const char *part, int64_t out,
                        int64_t in)
{
    char text[NAME_BYTES];

    return case_map(t, name_of(layer, part, text), out, in);
}

// Keys and values are projected by one GEMM for all layers.
static attncl_feedback_layer_params make_layer(struct case_data *t, int64_t l,
                                               attncl_feedback_params *attn, attncl_ffn_params *ffn)
{
    const struct sizes *s = &t->c->sizes;
    const int64_t width = s->C / s->heads;
    char text[NAME_BYTES];

    *attn = (attncl_feedback_params){
        .struct_size = sizeof *attn,
        .query_weight = map(t, l, "attn.query.linear.weight", s->C, s->C),
        .output_weight = map(t, l, "attn.output.weight", s->C, s->C),
        .output_bias = vector(t, l, "attn.output.bias", s->C),
        .key_pos_embeddings = case_weight(t, name_of(l, "attn.key_pos_embeddings", text), 1,
                                          DIMS(s->T, s->heads, width)),
        .query_pos_bias =
            case_weight(t, name_of(l, "attn.query_pos_bias", text), 1, DIMS(s->heads, width))};
    *ffn = (attncl_ffn_params){.struct_size = sizeof *ffn,
                               .layer1_weight = map(t, l, "feed_forward.layer1.weight", s->F, s->C),
                               .layer1_bias = vector(t, l, "feed_forward.layer1.bias", s->F),
                               .layer2_weight = map(t, l, "feed_forward.layer2.weight", s->C, s->F),
                               .layer2_bias = vector(t, l, "feed_forward.layer2.bias", s->C)};
    return (attncl_feedback_layer_params){
        .struct_size = sizeof(attncl_feedback_layer_params),
        .norm_attn_weight = vector(t, l, "norm_self_attn.weight", s->C),
        .norm_attn_bias = vector(t, l, "norm_self_attn.bias", s->C),
        .attn = attn,
        .norm_ffn_weight = vector(t, l, "norm_ff.weight", s->C),
        .norm_ffn_bias = vector(t, l, "norm_ff.bias", s->C),
        .ffn = ffn,
        .activation = ATTNCL_RELU,
    };
}

static void build_feedback(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    attncl_feedback_layer_params layers[MAX_LAYERS];
    attncl_feedback_params attn[MAX_LAYERS];
    attncl_ffn_params ffn[MAX_LAYERS];
    const attncl_value x = case_input(t, "x", 1, DIMS(s->T, s->B, s->C));

    for (int64_t l = 0; l < s->layers; ++l)
        layers[l] = make_layer(t, l, &attn[l], &ffn[l]);
    const attncl_feedback_transformer_params params = {
        .struct_size = sizeof params,
        .layers = layers,
        .n_layers = (size_t)s->layers,
        .n_heads = s->heads,
        .weights = case_weight(t, "weights", 1, DIMS(s->layers + 1)),
        .key_value_weight = case_map(t, "key_value.weight", 2 * s->layers * s->C, s->C),
        .key_value_bias = case_weight(t, "key_value.bias", 1, DIMS(2 * s->layers * s->C)),
        .norm_weight = case_weight(t, "norm.weight", 1, DIMS(s->C)),
        .norm_bias = case_weight(t, "norm.bias", 1, DIMS(s->C)),
    };
    attncl_graph_output(t->graph, "y", attncl_feedback_transformer(t->graph, &params, x, NULL));
}

// A key's bias moves all scores of a query alike, so the definition has none.
static struct ref_feedback_layer define_layer(const struct case_data *t, int64_t l)
{
    const int64_t n = t->c->sizes.C;
    const struct part keys = {2 * l * n, n, 1}, values = {(2 * l + 1) * n, n, 1};
    char text[NAME_BYTES];
    struct ref_feedback_layer layer = define_feedback_layer(t, name_of(l, "", text));

    layer.key_weight = PART(t, "key_value.weight", keys, ALL);
    layer.value_weight = PART(t, "key_value.weight", values, ALL);
    layer.value_bias = PART(t, "key_value.bias", values);
    return layer;
}

static void check_feedback(const struct case_data *t, struct check *c)
{
    const struct sizes *s = &t->c->sizes;
    const struct part batch = part_one(s->B - 1);
    struct ref_feedback_layer layers[MAX_LAYERS];
    const struct ref_feedback_transformer params = {layers, s->layers, WHOLE("weights"),
                                                    WHOLE("norm.weight"), WHOLE("norm.bias")};
    const struct host *x = PART(t, "x", ALL, batch, ALL);
    struct host *y = host_like(x);

    for (int64_t l = 0; l < s->layers; ++l)
        layers[l] = define_layer(t, l);
    ref_feedback_transformer(&params, ATTNCL_RELU, x, y, host_like(x));
    check_compare(c, (double)(s->layers * (4 * s->C + s->F + s->T)), PART(t, "y", ALL, batch, ALL),
                  y);
}

const struct family bench_feedback = {
    .name = "feedback", .suite = SUITE_LAYER, .build = build_feedback, .check = check_feedback};
