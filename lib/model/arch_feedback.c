// SPDX-License-Identifier: MIT
//
// feedback_attention, feedback_layer, feedback_transformer, feedback_transformer_kv.

#include "model/block_models.h"

// -- feedback_attention

struct attention_settings {
    struct feedback_settings feedback;
    bool precomputed;
};

static attncl_value attention_build(struct build *b, const void *settings)
{
    const struct attention_settings *s = settings;
    attncl_feedback_params params = ATTNCL_FEEDBACK_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;

    in.query = attncl__input(b, "query");
    in.key = attncl__input(b, "key");
    attncl__check_length(b, "key", 'S', s->feedback.n_positions);
    in.value = attncl__input(b, "value");

    attncl__feedback_attention_params(&b->params, &s->feedback,
                                      s->precomputed ? KEYS_PROJECTED : KEYS_OWN, &params);
    attncl_graph_output(
        b->graph, "output",
        attncl_feedback_attention(b->graph, &params, s->feedback.n_heads, &in, &weights));
    attncl_graph_output(b->graph, "attn", weights);
    return ATTNCL_NONE_VALUE;
}

#define OWN       WHEN("kv_precomputed", "false")
#define PROJECTED WHEN("kv_precomputed", "true")

const struct arch_class attncl__arch_feedback_attention = {
    .example = "{\"d_model\": 64, \"heads\": 4, \"P\": 40}",
    .settings_bytes = sizeof(struct attention_settings),
    .keys = KEYS(KEYS_OF(attncl__feedback_attention_keys, AT(attention_settings, feedback)),
                 {"kv_precomputed", KEY_BOOL, AT(attention_settings, precomputed), OR(false)}),
    .inputs = PORTS(PORT("query", F32, "B d_model"), PORT("key", F32, "S B d_model", OWN),
                    PORT("value", F32, "S B d_model", OWN),
                    PORT("key", F32, "S B heads d_model/heads", PROJECTED),
                    PORT("value", F32, "S B heads d_model/heads", PROJECTED)),
    .outputs = PORTS(PORT("output", F32, "B d_model"), PORT("attn", F32, "S B heads")),
    .build = attention_build,
};

// -- feedback_layer

static attncl_value layer_build(struct build *b, const void *settings)
{
    const struct feedback_settings *s = settings;
    struct feedback_parts parts;
    attncl_feedback_layer_params params;
    const attncl_value x = attncl__input(b, "x"), memory = attncl__input(b, "mem");

    if (memory.id)
        attncl__check_length(b, "mem", 'S', s->n_positions);
    attncl__feedback_layer_params(&b->params, s, KEYS_OWN, &parts, &params);
    return attncl_feedback_layer(b->graph, &params, s->n_heads, x, memory);
}

const struct arch_class attncl__arch_feedback_layer = {
    .example = "{\"d_model\": 64, \"heads\": 4, \"P\": 40, \"d_ff\": 256}",
    .settings_bytes = sizeof(struct feedback_settings),
    .keys = attncl__feedback_layer_keys,
    .inputs = PORTS(PORT("x", F32, "B d_model"), PORT("mem", F32, "S B d_model", .optional = true)),
    .outputs = PORTS(PORT("output", F32, "B d_model")),
    .build = layer_build,
};

// -- feedback_transformer, feedback_transformer_kv

static attncl_value transformer_build(struct build *b, const void *settings)
{
    const struct feedback_settings *s = settings;
    const attncl_value x = attncl__input(b, "x_seq");
    attncl_value memory = ATTNCL_NONE_VALUE;
    attncl__check_length(b, "x_seq", 'T', attncl__feedback_limit(s));
    attncl_graph_output(
        b->graph, "output",
        attncl__add_feedback(b, s, x, (struct decode_at){.last = ATTNCL_NONE_VALUE}, &memory));
    attncl_graph_output(b->graph, "memory", memory);
    return ATTNCL_NONE_VALUE;
}

static const struct port transformer_inputs[] = {PORT("x_seq", F32, "T B d_model"), {0}};
static const struct port transformer_outputs[] = {
    PORT("output", F32, "T B d_model"), PORT("memory", F32, "T B d_model"), {0}};

#define TRANSFORMER                                                                                \
    .settings_bytes = sizeof(struct feedback_settings), .inputs = transformer_inputs,              \
    .outputs = transformer_outputs, .build = transformer_build

const struct arch_class attncl__arch_feedback_transformer = {
    .example = "{\"d_model\": 64, \"heads\": 4, \"P\": 40, \"d_ff\": 256, "
               "\"n_layers\": 2}",
    .keys = attncl__feedback_keys,
    TRANSFORMER,
};

const struct arch_class attncl__arch_feedback_transformer_kv = {
    .example = "{\"d_model\": 64, \"heads\": 4, \"P\": 40, \"d_ff\": 256, "
               "\"n_layers\": 2}",
    .keys = attncl__feedback_kv_keys,
    TRANSFORMER,
};
