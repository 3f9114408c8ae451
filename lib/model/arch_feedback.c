// SPDX-License-Identifier: MIT
//
// feedback_attention, feedback_layer, feedback_transformer, feedback_transformer_kv.

#include <inttypes.h>
#include <stdio.h>

#include "attncl/ops.h"
#include "base/alloc.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/blocks.h"
#include "model/config.h"

// What the attention of a layer has parameters for.
enum keys {
    KEYS_OWN,       // projects keys and values itself
    KEYS_PROJECTED, // is given projected ones
};

static attncl_status configure_attention(const struct json *config, const char *score,
                                         struct feedback_settings *ret)
{
    static const struct choice scores[] = {{"joint", 0}, {"split", 1}};
    int split;
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    TRY(attncl__config_int(config, "heads", 1, &ret->n_heads));
    REQUIRE(ret->d_model % ret->n_heads == 0, ATTNCL_ERR_FORMAT,
            "heads = %" PRId64 " does not divide d_model = %" PRId64, ret->n_heads, ret->d_model);
    TRY(attncl__config_int_or(config, "P", 1, 4096, &ret->n_positions));
    TRY(attncl__config_choice(config, "score", scores, N_CHOICES(scores), score, &split));
    ret->split = split != 0;
    return ATTNCL_OK;
}

attncl_status attncl__feedback_configure(const struct json *config, bool shared,
                                         struct feedback_settings *ret)
{
    TRY(configure_attention(config, shared ? "split" : "joint", ret));
    TRY(attncl__ffn_configure(config, &ret->ffn));
    ret->shared = shared;
    return attncl__config_int(config, "n_layers", 0, &ret->n_layers);
}

int64_t attncl__feedback_limit(const struct feedback_settings *s)
{
    return s->n_positions + 1; // the first step has no memory
}

static void attention_params(struct params *p, const struct feedback_settings *s, enum keys keys,
                             attncl_feedback_params *ret)
{
    const int64_t c = s->d_model, h = s->n_heads, d = c / h;
    const bool own = keys == KEYS_OWN;
    ret->query_weight = PARAM(p, "query.linear.weight", c, c);
    ret->key_weight = PARAM_IF(own, p, "key.linear.weight", c, c);
    ret->value_weight = PARAM_IF(own, p, "value.linear.weight", c, c);
    ret->value_bias = PARAM_IF(own, p, "value.linear.bias", c);
    ret->output_weight = PARAM(p, "output.weight", c, c);
    ret->output_bias = PARAM(p, "output.bias", c);
    ret->key_pos_embeddings = PARAM(p, "key_pos_embeddings", s->n_positions, h, d);
    ret->query_pos_bias = PARAM(p, "query_pos_bias", h, d);
    ret->key_pos_bias = PARAM_IF(s->split, p, "key_pos_bias", s->n_positions, h);
}

// What a layer's parameters point to.
struct layer_parts {
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
};

// `ret` points into `parts`.
static void layer_params(struct params *p, const struct feedback_settings *s, enum keys keys,
                         struct layer_parts *parts, attncl_feedback_layer_params *ret)
{
    *parts = (struct layer_parts){ATTNCL_FEEDBACK_PARAMS_INIT, ATTNCL_FFN_PARAMS_INIT};
    *ret = (attncl_feedback_layer_params)ATTNCL_FEEDBACK_LAYER_PARAMS_INIT;
    ret->attn = &parts->attn;
    ret->ffn = &parts->ffn;
    attncl__params_enter(p, "norm_self_attn");
    ret->norm_attn_weight = PARAM(p, "weight", s->d_model);
    ret->norm_attn_bias = PARAM(p, "bias", s->d_model);
    attncl__params_leave(p);
    attncl__params_enter(p, "attn");
    attention_params(p, s, keys, &parts->attn);
    attncl__params_leave(p);
    attncl__params_enter(p, "norm_ff");
    ret->norm_ffn_weight = PARAM(p, "weight", s->d_model);
    ret->norm_ffn_bias = PARAM(p, "bias", s->d_model);
    attncl__params_leave(p);
    attncl__params_enter(p, "feed_forward");
    attncl__ffn_params(p, &s->ffn, &parts->ffn);
    attncl__params_leave(p);
    ret->activation = s->ffn.activation;
}

// The weights that project a memory to keys and values, stacked for one GEMM: those of all layers,
// one after another, or the shared pair.
static attncl_value key_value_weight(struct params *p, const struct feedback_settings *s)
{
    const int64_t c = s->d_model;
    char name[64];
    struct param_stack stack = attncl__param_stack_begin(p, "key_value.weight", c);
    for (int64_t i = 0; i < s->n_layers && !s->shared && p->status == ATTNCL_OK; ++i) {
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.key.linear.weight", i);
        attncl__param_stack_add(&stack, name, c);
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.value.linear.weight", i);
        attncl__param_stack_add(&stack, name, c);
    }
    if (s->shared) {
        attncl__param_stack_add(&stack, "key.linear.weight", c);
        attncl__param_stack_add(&stack, "value.linear.weight", c);
    }
    return attncl__param_stack_end(&stack);
}

// Values of a layer's own projection have a bias, keys none.
static attncl_value key_value_bias(struct params *p, const struct feedback_settings *s)
{
    char name[64];
    if (s->shared)
        return ATTNCL_NONE_VALUE;
    struct param_stack stack = attncl__param_stack_begin(p, "key_value.bias", 0);
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.value.linear.bias", i);
        attncl__param_stack_add(&stack, NULL, s->d_model);
        attncl__param_stack_add(&stack, name, s->d_model);
    }
    return attncl__param_stack_end(&stack);
}

// `parts`, `layers`: space for n_layers; NULL when loading.
static void transformer_params(struct params *p, const struct feedback_settings *s,
                               struct layer_parts *parts, attncl_feedback_layer_params *layers,
                               attncl_feedback_transformer_params *ret)
{
    struct layer_parts ignored_parts;
    attncl_feedback_layer_params ignored;
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        attncl__params_enter(p, "layers.%" PRId64, i);
        layer_params(p, s, KEYS_PROJECTED, parts ? &parts[i] : &ignored_parts,
                     layers ? &layers[i] : &ignored);
        attncl__params_leave(p);
    }
    *ret = (attncl_feedback_transformer_params)ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT;
    ret->layers = layers;
    ret->n_layers = (size_t)s->n_layers;
    ret->n_heads = s->n_heads;
    if (s->n_layers > 0 || s->shared) {
        ret->key_value_weight = key_value_weight(p, s);
        ret->key_value_bias = key_value_bias(p, s);
    }
    ret->weights = PARAM(p, "weights", s->n_layers + 1);
    attncl__params_enter(p, "norm");
    ret->norm_weight = PARAM(p, "weight", s->d_model);
    ret->norm_bias = PARAM(p, "bias", s->d_model);
    attncl__params_leave(p);
}

void attncl__feedback_load(struct params *p, const struct feedback_settings *s)
{
    attncl_feedback_transformer_params ignored;
    transformer_params(p, s, NULL, NULL, &ignored);
}

// With a position one step of x, else all of them.
static attncl_status build_steps(struct build *b, const struct feedback_settings *s, attncl_value x,
                                 attncl_value position, attncl_value *y_ret,
                                 attncl_value *memory_ret)
{
    attncl_feedback_transformer_params params;
    const size_t n = (size_t)s->n_layers;
    attncl_feedback_layer_params *layers = attncl__alloc_array(n, sizeof *layers);
    struct layer_parts *parts = attncl__alloc_array(n, sizeof *parts);
    if (!layers || !parts) {
        attncl__free(layers);
        attncl__free(parts);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "%zu layers", n);
    }
    transformer_params(&b->params, s, parts, layers, &params);
    *y_ret = position.id
                 ? attncl_feedback_transformer_step(b->graph, &params, attncl__feedback_limit(s), x,
                                                    position, memory_ret)
                 : attncl_feedback_transformer(b->graph, &params, x, memory_ret);
    attncl__free(layers);
    attncl__free(parts);
    return attncl_graph_status(b->graph);
}

attncl_status attncl__feedback(struct build *b, const struct feedback_settings *s, attncl_value x,
                               attncl_value *y_ret, attncl_value *memory_ret)
{
    return build_steps(b, s, x, ATTNCL_NONE_VALUE, y_ret, memory_ret);
}

attncl_status attncl__feedback_step(struct build *b, const struct feedback_settings *s,
                                    attncl_value x, attncl_value position, attncl_value *y_ret)
{
    return build_steps(b, s, x, position, y_ret, NULL);
}

// -- feedback_attention

struct attention_settings {
    struct feedback_settings feedback;
    bool precomputed;
};

static attncl_status attention_configure(const struct json *config, void *settings)
{
    struct attention_settings *s = settings;
    TRY(configure_attention(config, "joint", &s->feedback));
    return attncl__config_bool_or(config, "kv_precomputed", false, &s->precomputed);
}

static void attention_load(struct params *p, const void *settings)
{
    const struct attention_settings *s = settings;
    attncl_feedback_params ignored = ATTNCL_FEEDBACK_PARAMS_INIT;
    attention_params(p, &s->feedback, s->precomputed ? KEYS_PROJECTED : KEYS_OWN, &ignored);
}

static attncl_status check_memories(const char *name, int64_t n, const struct feedback_settings *s)
{
    REQUIRE(n <= s->n_positions, ATTNCL_ERR_SHAPE,
            "input %s has %" PRId64 " memories, P = %" PRId64 " are possible", name, n,
            s->n_positions);
    return ATTNCL_OK;
}

static attncl_status attention_build(struct build *b, const void *settings)
{
    const struct attention_settings *s = settings;
    const int64_t c = s->feedback.d_model, h = s->feedback.n_heads;
    int64_t dim[4] = {ANY, ANY, c};
    attncl_feedback_params params = ATTNCL_FEEDBACK_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;

    TRY(attncl__input_real(b, "query", 2, dim + 1, &in.query));
    dim[1] = attncl__input_find(b, "query")->dim[0];
    if (s->precomputed) {
        dim[2] = h;
        dim[3] = c / h;
    }
    TRY(attncl__input_real(b, "key", s->precomputed ? 4 : 3, dim, &in.key));
    dim[0] = attncl__input_find(b, "key")->dim[0];
    TRY(check_memories("key", dim[0], &s->feedback));
    TRY(attncl__input_real(b, "value", s->precomputed ? 4 : 3, dim, &in.value));

    attention_params(&b->params, &s->feedback, s->precomputed ? KEYS_PROJECTED : KEYS_OWN, &params);
    attncl_graph_output(b->graph, "output",
                        attncl_feedback_attention(b->graph, &params, h, &in, &weights));
    attncl_graph_output(b->graph, "attn", weights);
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_feedback_attention = {
    .name = "feedback_attention",
    .settings_bytes = sizeof(struct attention_settings),
    .configure = attention_configure,
    .load = attention_load,
    .build = attention_build,
};

// -- feedback_layer

static attncl_status layer_configure(const struct json *config, void *settings)
{
    struct feedback_settings *s = settings;
    TRY(configure_attention(config, "joint", s));
    return attncl__ffn_configure(config, &s->ffn);
}

static void layer_load(struct params *p, const void *settings)
{
    struct layer_parts parts;
    attncl_feedback_layer_params ignored;
    layer_params(p, settings, KEYS_OWN, &parts, &ignored);
}

static attncl_status layer_build(struct build *b, const void *settings)
{
    const struct feedback_settings *s = settings;
    int64_t dim[3] = {ANY, ANY, s->d_model};
    struct layer_parts parts;
    attncl_feedback_layer_params params;
    attncl_value x, memory = ATTNCL_NONE_VALUE;

    TRY(attncl__input_real(b, "x", 2, dim + 1, &x));
    if (attncl__input_find(b, "mem")) {
        dim[1] = attncl__input_find(b, "x")->dim[0];
        TRY(attncl__input_real(b, "mem", 3, dim, &memory));
        TRY(check_memories("mem", attncl__input_find(b, "mem")->dim[0], s));
    }
    layer_params(&b->params, s, KEYS_OWN, &parts, &params);
    attncl_graph_output(b->graph, "output",
                        attncl_feedback_layer(b->graph, &params, s->n_heads, x, memory));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_feedback_layer = {
    .name = "feedback_layer",
    .settings_bytes = sizeof(struct feedback_settings),
    .configure = layer_configure,
    .load = layer_load,
    .build = layer_build,
};

// -- feedback_transformer, feedback_transformer_kv

static attncl_status transformer_configure(const struct json *config, void *settings)
{
    return attncl__feedback_configure(config, false, settings);
}

static attncl_status shared_configure(const struct json *config, void *settings)
{
    return attncl__feedback_configure(config, true, settings);
}

static void transformer_load(struct params *p, const void *settings)
{
    attncl__feedback_load(p, settings);
}

static attncl_status transformer_build(struct build *b, const void *settings)
{
    const struct feedback_settings *s = settings;
    attncl_value x, y, memory;
    TRY(attncl__input_sequence(b, "x_seq", s->d_model, attncl__feedback_limit(s), &x));
    TRY(attncl__feedback(b, s, x, &y, &memory));
    attncl_graph_output(b->graph, "output", y);
    attncl_graph_output(b->graph, "memory", memory);
    return ATTNCL_OK;
}

#define TRANSFORMER                                                                                \
    .settings_bytes = sizeof(struct feedback_settings), .load = transformer_load,                  \
    .build = transformer_build

const struct arch_class attncl__arch_feedback_transformer = {
    .name = "feedback_transformer",
    .configure = transformer_configure,
    TRANSFORMER,
};

const struct arch_class attncl__arch_feedback_transformer_kv = {
    .name = "feedback_transformer_kv",
    .configure = shared_configure,
    TRANSFORMER,
};
