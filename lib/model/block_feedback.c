// SPDX-License-Identifier: MIT
//
// Keys, parameters and nodes of a feedback transformer and its parts.

#include <inttypes.h>
#include <stdio.h>

#include "model/block_models.h"

static const struct choice scores[] = {{"joint", 0}, {"split", 1}, {0}};

static attncl_status check_heads(void *settings)
{
    const struct feedback_settings *s = settings;
    REQUIRE(s->d_model % s->n_heads == 0, ATTNCL_ERR_FORMAT,
            "heads = %" PRId64 " does not divide d_model = %" PRId64, s->n_heads, s->d_model);
    return ATTNCL_OK;
}

static const struct key heads[] = {
    {"d_model", KEY_INT, AT(feedback_settings, d_model), .min = 1},
    {"heads", KEY_INT, AT(feedback_settings, n_heads), .min = 1},
    {"P", KEY_INT, AT(feedback_settings, n_positions), .min = 1, OR(4096)},
    CHECK(check_heads),
    {0},
};

const struct key attncl__feedback_attention_keys[] = {
    KEYS_OF(heads, 0),
    {"score", KEY_WORD, AT(feedback_settings, split), .choices = scores, OR_WORD("joint")},
    {0},
};

// Keys besides attention's.
static const struct key layer_keys[] = {
    KEYS_OF(attncl__ffn_keys, AT(feedback_settings, ffn)),
    NORM_EPS_KEY(AT(feedback_settings, norm_eps)),
    {0},
};
static const struct key stack_keys[] = {
    KEYS_OF(layer_keys, 0),
    {"n_layers", KEY_INT, AT(feedback_settings, n_layers), .min = 0},
    {0},
};

const struct key attncl__feedback_layer_keys[] = {
    KEYS_OF(attncl__feedback_attention_keys, 0),
    KEYS_OF(layer_keys, 0),
    {0},
};

const struct key attncl__feedback_keys[] = {
    KEYS_OF(attncl__feedback_attention_keys, 0),
    KEYS_OF(stack_keys, 0),
    {0},
};

const struct key attncl__feedback_kv_keys[] = {
    SETTING(KEY_BOOL, AT(feedback_settings, shared), .otherwise = true),
    KEYS_OF(heads, 0),
    {"score", KEY_WORD, AT(feedback_settings, split), .choices = scores, OR_WORD("split")},
    KEYS_OF(stack_keys, 0),
    {0},
};

int64_t attncl__feedback_limit(const struct feedback_settings *s)
{
    return s->n_positions + 1; // the first step has no memory
}

void attncl__feedback_attention_params(struct params *p, const struct feedback_settings *s,
                                       enum feedback_keys keys, attncl_feedback_params *ret)
{
    const int64_t c = s->d_model, h = s->n_heads, d = c / h;
    const bool own = keys == KEYS_OWN;
    const struct param_init linear = attncl__init_fan_in(c), zero = INIT_CONSTANT(0);
    ret->query_weight = PARAM(p, "query.linear.weight", linear, c, c);
    ret->key_weight = PARAM_IF(own, p, "key.linear.weight", linear, c, c);
    ret->value_weight = PARAM_IF(own, p, "value.linear.weight", linear, c, c);
    ret->value_bias = PARAM_IF(own, p, "value.linear.bias", linear, c);
    ret->output_weight = PARAM(p, "output.weight", linear, c, c);
    ret->output_bias = PARAM(p, "output.bias", linear, c);
    ret->key_pos_embeddings = PARAM(p, "key_pos_embeddings", zero, s->n_positions, h, d);
    ret->query_pos_bias = PARAM(p, "query_pos_bias", zero, h, d);
    ret->key_pos_bias = PARAM_IF(s->split, p, "key_pos_bias", zero, s->n_positions, h);
}

void attncl__feedback_layer_params(struct params *p, const struct feedback_settings *s,
                                   enum feedback_keys keys, struct feedback_parts *parts,
                                   attncl_feedback_layer_params *ret)
{
    *parts = (struct feedback_parts){ATTNCL_FEEDBACK_PARAMS_INIT, ATTNCL_FFN_PARAMS_INIT};
    *ret = (attncl_feedback_layer_params)ATTNCL_FEEDBACK_LAYER_PARAMS_INIT;
    ret->attn = &parts->attn;
    ret->ffn = &parts->ffn;
    const struct norm_params norm_attn =
        attncl__norm_params(p, "norm_self_attn", NORM_LAYER, s->d_model);
    ret->norm_attn_weight = norm_attn.weight;
    ret->norm_attn_bias = norm_attn.bias;
    attncl__params_enter(p, "attn");
    attncl__feedback_attention_params(p, s, keys, &parts->attn);
    attncl__params_leave(p);
    const struct norm_params norm_ffn = attncl__norm_params(p, "norm_ff", NORM_LAYER, s->d_model);
    ret->norm_ffn_weight = norm_ffn.weight;
    ret->norm_ffn_bias = norm_ffn.bias;
    attncl__params_enter(p, "feed_forward");
    attncl__ffn_params(p, &s->ffn, &parts->ffn);
    attncl__params_leave(p);
    ret->activation = s->ffn.activation;
    ret->norm_eps = (float)s->norm_eps;
}

// The projections of a memory to keys and values, stacked for one GEMM: of all layers, or the shared
// pair.
static attncl_value declare_key_value_weight(struct params *p, const struct feedback_settings *s)
{
    const int64_t c = s->d_model;
    const struct param_init linear = attncl__init_fan_in(c);
    char name[64];
    struct param_stack stack = {.p = p, .name = "key_value.weight", .width = c};
    for (int64_t i = 0; i < s->n_layers && !s->shared && p->status == ATTNCL_OK; ++i) {
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.key.linear.weight", i);
        attncl__param_stack_add(&stack, name, linear, c);
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.value.linear.weight", i);
        attncl__param_stack_add(&stack, name, linear, c);
    }
    if (s->shared) {
        attncl__param_stack_add(&stack, "key.linear.weight", linear, c);
        attncl__param_stack_add(&stack, "value.linear.weight", linear, c);
    }
    return attncl__param_stack_end(&stack);
}

// A layer's own value projection has a bias; its key projection has none.
static attncl_value declare_key_value_bias(struct params *p, const struct feedback_settings *s)
{
    const struct param_init linear = attncl__init_fan_in(s->d_model);
    char name[64];
    if (s->shared)
        return ATTNCL_NONE_VALUE;
    struct param_stack stack = {.p = p, .name = "key_value.bias"};
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        snprintf(name, sizeof name, "layers.%" PRId64 ".attn.value.linear.bias", i);
        attncl__param_stack_add(&stack, NULL, linear, s->d_model);
        attncl__param_stack_add(&stack, name, linear, s->d_model);
    }
    return attncl__param_stack_end(&stack);
}

// parts, layers: arrays of n elements.
static void declare_params(struct params *p, const struct feedback_settings *s, size_t n,
                           struct feedback_parts *parts, attncl_feedback_layer_params *layers,
                           attncl_feedback_transformer_params *ret)
{
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        const size_t at = (size_t)i % n;
        attncl__params_enter(p, "layers.%" PRId64, i);
        attncl__feedback_layer_params(p, s, KEYS_PROJECTED, &parts[at], &layers[at]);
        attncl__params_leave(p);
    }
    *ret = (attncl_feedback_transformer_params)ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT;
    ret->layers = layers;
    ret->n_layers = (size_t)s->n_layers;
    ret->n_heads = s->n_heads;
    if (s->n_layers > 0 || s->shared) {
        ret->key_value_weight = declare_key_value_weight(p, s);
        ret->key_value_bias = declare_key_value_bias(p, s);
    }
    ret->weights = PARAM(p, "weights", INIT_CONSTANT(1), s->n_layers + 1);
    const struct norm_params norm = attncl__norm_params(p, "norm", NORM_LAYER, s->d_model);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
}

// A layer's dropouts, in the order of the forward pass.
struct layer_dropout {
    attncl_dropout_desc weights, attn, hidden, ffn;
};

static void set_layer_dropout(attncl_dropout_desc *next, struct feedback_parts *parts,
                              attncl_feedback_layer_params *layer, struct layer_dropout *ret)
{
    ret->weights = attncl__next_dropout(next, 0);
    ret->attn = attncl__next_dropout(next, 0);
    ret->hidden = attncl__next_dropout(next, 0);
    ret->ffn = attncl__next_dropout(next, 0);
    parts->attn.dropout = &ret->weights;
    layer->attn_dropout = &ret->attn;
    parts->ffn.dropout = &ret->hidden;
    layer->ffn_dropout = &ret->ffn;
}

attncl_value attncl__add_feedback(struct build *b, const struct feedback_settings *s,
                                  attncl_value x, struct decode_at at, attncl_value *memory_ret)
{
    attncl_feedback_transformer_params params;
    const size_t n = b->graph ? (size_t)s->n_layers : 1; // without a graph the layers share one
    attncl_feedback_layer_params *layers = attncl__alloc_array(n, sizeof *layers);
    struct feedback_parts *parts = attncl__alloc_array(n, sizeof *parts);
    struct layer_dropout *dropped = attncl__alloc_array(n, sizeof *dropped);
    if (!layers || !parts || !dropped) {
        attncl__build_fail(b, FAIL(ATTNCL_ERR_NO_MEMORY, "%zu layers", n));
        goto done;
    }
    declare_params(&b->params, s, n, parts, layers, &params);
    for (size_t i = 0; i < n; ++i)
        set_layer_dropout(&b->dropout, &parts[i], &layers[i], &dropped[i]);
    const struct cache_desc cache = {.limit = attncl__feedback_limit(s), .dtype = b->state_dtype};
    x = at.position.id || at.last.id
            ? attncl__feedback_transformer_decode(b->graph, &params, &cache, x, &at, memory_ret)
            : attncl_feedback_transformer(b->graph, &params, x, memory_ret);
done:
    attncl__free(layers);
    attncl__free(parts);
    attncl__free(dropped);
    return x;
}
