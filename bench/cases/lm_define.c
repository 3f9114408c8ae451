// SPDX-License-Identifier: MIT
//
// The definition of a language model, of one batch entry, from the layers of tests/ref.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/ops.h"
#include "cases/define.h"

// A layer of the model and where its parameters are.
struct layer {
    const struct case_data *t;
    const struct sizes *s;
    char prefix[64];
};

// As the fields of define.h want it.
#define PARAM(name, ...) define_param(l->t, l->prefix, name)

static bool is(const struct layer *l, const char *kind)
{
    return strcmp(l->s->layer, kind) == 0;
}

static struct host *map(const struct layer *l, const char *name, const struct host *x)
{
    char weight[64], bias[64];

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return define_linear(x, PARAM(weight), PARAM(bias));
}

static struct host *aft_conv(const struct layer *l, const struct host *n)
{
    struct host *q = map(l, "self_attn.query", n), *mixed = host_like(q);

    ref_aft_conv_fwd(q, map(l, "self_attn.key", n), map(l, "self_attn.value", n),
                     PARAM("self_attn.w"), NULL, true, mixed, host_like(q));
    return map(l, "self_attn.output", mixed);
}

static struct host *mix(const struct layer *l, const struct host *n)
{
    const int64_t steps = n->dim[0];
    struct host *h = host_like(n);

    if (is(l, "transformer") || is(l, "gpt2")) {
        const struct ref_mha params = {MIXING_FIELDS("self_attn.", ".linear", PARAM, PARAM)};
        ref_multi_head_attention(&params, (struct ref_attention){.causal = true}, l->s->heads, true,
                                 n, n, n, h,
                                 host_new(ATTNCL_F32, DIMS(1, l->s->heads, steps, steps)));
        return h;
    }
    if (is(l, "aft_conv"))
        return aft_conv(l, n);
    const struct ref_aft params = {MIXING_FIELDS("self_attn.", "", PARAM, PARAM),
                                   .pos_bias =
                                       is(l, "aft_simple") ? NULL : PARAM("self_attn.pos_bias")};
    ref_aft_layer(&params, (int)(is(l, "aft_local") ? l->s->window : steps), true, n, NULL, h);
    return h;
}

// x += mix(LN x);  x += ffn(LN x)
static struct host *pre_norm_layer(const struct layer *l, const struct host *x)
{
    const struct ref_ffn ffn = {FFN_FIELDS("feed_forward.", PARAM, PARAM)};
    const struct host *n =
        define_layer_norm(x, PARAM("norm_self_attn.weight"), PARAM("norm_self_attn.bias"));
    const struct host *h = define_add(x, mix(l, n));
    struct host *y = host_like(x);

    n = define_layer_norm(h, PARAM("norm_ff.weight"), PARAM("norm_ff.bias"));
    ref_feed_forward(&ffn, is(l, "gpt2") ? ATTNCL_GELU_TANH : ATTNCL_RELU, n, y);
    return define_add(h, y);
}

// [steps, 2, width / 2]: cos and sin of t / 10000^(2 i / width)
static struct host *rotary_table(int64_t steps, int64_t width)
{
    struct host *table = host_new(ATTNCL_F32, DIMS(steps, 2, width / 2));

    for (int64_t k = 0; k < table->count; ++k) {
        const int64_t i = k % (width / 2), t = k / width;
        const double angle = (double)t / pow(10000.0, (double)(2 * i) / (double)width);
        table->data[k] = k / (width / 2) % 2 ? sin(angle) : cos(angle);
    }
    return table;
}

// Without biases; RMS norms.
static struct host *llama_layer(const struct layer *l, const struct host *x)
{
    const int64_t steps = x->dim[0], heads = l->s->heads;
    const struct ref_mha attention = {.query_weight = PARAM("self_attn.query.linear.weight"),
                                      .key_weight = PARAM("self_attn.key.linear.weight"),
                                      .value_weight = PARAM("self_attn.value.linear.weight"),
                                      .output_weight = PARAM("self_attn.output.weight"),
                                      .rotary = rotary_table(steps, l->s->C / heads)};
    const struct ref_ffn ffn = {.layer1_weight = PARAM("feed_forward.layer1.weight"),
                                .gate_weight = PARAM("feed_forward.linear_v.weight"),
                                .layer2_weight = PARAM("feed_forward.layer2.weight")};
    const struct host *n = define_layer_norm(x, PARAM("norm_self_attn.weight"), NULL);
    struct host *mixed = host_like(x), *y = host_like(x);

    ref_multi_head_attention(&attention, (struct ref_attention){.causal = true}, heads, true, n, n,
                             n, mixed, host_new(ATTNCL_F32, DIMS(1, heads, steps, steps)));
    const struct host *h = define_add(x, mixed);
    ref_feed_forward(&ffn, ATTNCL_SILU, define_layer_norm(h, PARAM("norm_ff.weight"), NULL), y);
    return define_add(h, y);
}

static struct host *gmlp_layer(const struct layer *l, const struct host *x)
{
    const struct ref_gmlp params = {.sgu = {GATE_FIELDS(PARAM)}, GMLP_FIELDS(PARAM, PARAM)};
    struct host *y = host_like(x);

    ref_gmlp_block(&params, true, x, NULL, y);
    return y;
}

static struct host *embed(const struct case_data *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, s->C));

    ref_embedding_fwd(tokens, case_whole(t, "src_embed.linear.weight"), sqrt((double)s->C), x);
    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t p = i / s->C, c = i % s->C;
        const double angle = (double)p / pow(10000.0, (double)(c / 2 * 2) / (double)s->C);
        x->data[i] += c % 2 ? cos(angle) : sin(angle);
    }
    return x;
}

// Positions are weights, and the embedding is not scaled.
static struct host *embed_gpt2(const struct case_data *t, const struct host *tokens)
{
    const int64_t width = t->c->sizes.C;
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, width));
    const struct part some = {0, tokens->dim[0], 1};

    ref_embedding_fwd(tokens, WHOLE("src_embed.linear.weight"), 1, x);
    return define_add(x, PART(t, "src_embed.positional_encodings", some, ALL, ALL));
}

// Neither a scale nor positions.
static struct host *embed_plain(const struct case_data *t, const struct host *tokens)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, t->c->sizes.C));

    ref_embedding_fwd(tokens, WHOLE("src_embed.weight"), 1, x);
    return x;
}

static struct ref_feedback_layer feedback_layer(const struct layer *l)
{
    struct ref_feedback_layer layer = define_feedback_layer(l->t, l->prefix);

    if (is(l, "feedback")) {
        layer.key_weight = PARAM("attn.key.linear.weight");
        layer.value_weight = PARAM("attn.value.linear.weight");
        layer.value_bias = PARAM("attn.value.linear.bias");
    } else {
        layer.key_weight = case_whole(l->t, "transformer.key.linear.weight");
        layer.value_weight = case_whole(l->t, "transformer.value.linear.weight");
        layer.place_bias = PARAM("attn.key_pos_bias");
    }
    return layer;
}

static struct host *feedback_lm(const struct case_data *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    struct ref_feedback_layer layers[16];
    const struct ref_feedback_transformer params = {layers, s->layers, WHOLE("transformer.weights"),
                                                    WHOLE("transformer.norm.weight"),
                                                    WHOLE("transformer.norm.bias")};
    struct host *x = embed_plain(t, tokens), *y = host_like(x);
    struct layer l = {t, s, ""};

    for (int64_t i = 0; i < s->layers; ++i) {
        snprintf(l.prefix, sizeof l.prefix, "transformer.layers.%d.", (int)i);
        layers[i] = feedback_layer(&l);
    }
    ref_feedback_transformer(&params, ATTNCL_RELU, x, y, host_like(x));
    return define_linear(y, WHOLE("generator.weight"), WHOLE("generator.bias"));
}

struct host *lm_define(const struct case_data *t, const struct host *tokens)
{
    struct layer l = {t, &t->c->sizes, ""};

    if (is(&l, "feedback") || is(&l, "feedback_kv"))
        return feedback_lm(t, tokens);
    struct host *x = is(&l, "gpt2")    ? embed_gpt2(t, tokens)
                     : is(&l, "llama") ? embed_plain(t, tokens)
                                       : embed(t, tokens);
    for (int64_t i = 0; i < l.s->layers; ++i) {
        snprintf(l.prefix, sizeof l.prefix, "encoder.layers.%d.", (int)i);
        x = is(&l, "gmlp")    ? gmlp_layer(&l, x)
            : is(&l, "llama") ? llama_layer(&l, x)
                              : pre_norm_layer(&l, x);
    }
    if (is(&l, "llama"))
        return define_linear(define_layer_norm(x, WHOLE("encoder.norm.weight"), NULL),
                             WHOLE("generator.projection.weight"), NULL);
    x = define_layer_norm(x, WHOLE("encoder.norm.weight"), WHOLE("encoder.norm.bias"));
    if (is(&l, "gpt2"))
        return define_linear(x, WHOLE("src_embed.linear.weight"), NULL);
    return define_linear(x, WHOLE("generator.projection.weight"),
                         WHOLE("generator.projection.bias"));
}
