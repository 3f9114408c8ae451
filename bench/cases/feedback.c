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

// Of layer `l`, as the fields of define.h want them.
#define LAYER_MAP(name, out, in) case_map(t, name_of(l, name, text), out, in)
#define LAYER_ARRAY(name, spread, ...)                                                             \
    case_weight(t, name_of(l, name, text), spread, DIMS(__VA_ARGS__))

// Keys and values are projected by one GEMM for all layers.
static attncl_feedback_layer_params make_layer(struct case_data *t, int64_t l,
                                               attncl_feedback_params *attn, attncl_ffn_params *ffn)
{
    const struct sizes *s = &t->c->sizes;
    const int64_t width = s->C / s->heads;
    char text[NAME_BYTES];

    *attn = (attncl_feedback_params){
        .struct_size = sizeof *attn,
        .query_weight = LAYER_MAP("attn.query.linear.weight", s->C, s->C),
        DENSE_FIELDS("", output, "attn.output", s->C, s->C, LAYER_MAP, LAYER_ARRAY),
        .key_pos_embeddings = LAYER_ARRAY("attn.key_pos_embeddings", 1, s->T, s->heads, width),
        .query_pos_bias = LAYER_ARRAY("attn.query_pos_bias", 1, s->heads, width)};
    *ffn = (attncl_ffn_params){.struct_size = sizeof *ffn,
                               FFN_FIELDS("feed_forward.", LAYER_MAP, LAYER_ARRAY)};
    return (attncl_feedback_layer_params){
        .struct_size = sizeof(attncl_feedback_layer_params),
        NORM_FIELDS("", norm_attn, "norm_self_attn", s->C, LAYER_ARRAY),
        NORM_FIELDS("", norm_ffn, "norm_ff", s->C, LAYER_ARRAY),
        .attn = attn,
        .ffn = ffn,
        .activation = ATTNCL_RELU,
    };
}

static attncl_value build_feedback(struct case_data *t, const struct sizes *s)
{
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
        .weights = ARRAY("weights", 1, s->layers + 1),
        DENSE_FIELDS("", key_value, "key_value", 2 * s->layers * s->C, s->C, MAP, ARRAY),
        NORM_FIELDS("", norm, "norm", s->C, ARRAY),
    };
    return attncl_feedback_transformer(t->graph, &params, x, NULL);
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

static void check_feedback(const struct case_data *t, const struct sizes *s, struct check *c)
{
    struct ref_feedback_layer layers[MAX_LAYERS];
    const struct ref_feedback_transformer params = {layers, s->layers, WHOLE("weights"),
                                                    WHOLE("norm.weight"), WHOLE("norm.bias")};
    const struct host *x = PART(t, "x", ALL, LAST, ALL);
    struct host *y = host_like(x);

    for (int64_t l = 0; l < s->layers; ++l)
        layers[l] = define_layer(t, l);
    ref_feedback_transformer(&params, ATTNCL_RELU, x, y, host_like(x));
    check_compare(c, (double)(s->layers * (4 * s->C + s->F + s->T)), PART(t, "y", ALL, LAST, ALL),
                  y);
}

PLAIN_FAMILY(feedback, SUITE_LAYER)
