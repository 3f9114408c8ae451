// SPDX-License-Identifier: MIT
//
// A language model in double precision, of one batch entry:
//   logits = projection(LN(layers(embedding(tokens) sqrt(C) + sinusoids)))
//   logits = projection(feedback transformer(embedding(tokens)))

#include <math.h>

#include "cases/define.h"
#include "cases/feedback.h"
#include "cases/lm.h"

static struct host *param(const struct case_data *t, int64_t layer, const char *name,
                          const char *part)
{
    char text[LM_NAME_BYTES];

    return case_data_whole(t, lm_name(t, layer, name, part, text));
}

static struct host *map(const struct case_data *t, int64_t layer, const char *name,
                        const struct host *x)
{
    return define_linear(x, param(t, layer, name, "weight"), param(t, layer, name, "bias"));
}

static struct host *norm(const struct case_data *t, int64_t layer, const char *name,
                         const struct host *x)
{
    return define_layer_norm(x, param(t, layer, name, "weight"), param(t, layer, name, "bias"));
}

static struct host *gmlp_layer(const struct case_data *t, int64_t layer, const struct host *x)
{
    struct host *h = map(t, layer, "proj1", norm(t, layer, "norm", x));

    h = define_spatial_gate(define_activation(h, ATTNCL_GELU),
                            param(t, layer, "sgu.norm", "weight"),
                            param(t, layer, "sgu.norm", "bias"), param(t, layer, "sgu", "weight"),
                            param(t, layer, "sgu", "bias"), true);
    return define_add(x, map(t, layer, "proj2", h));
}

static struct host *aft(const struct case_data *t, int64_t layer, const struct host *n)
{
    const struct host *q = map(t, layer, "self_attn.query", n);
    const struct host *k = map(t, layer, "self_attn.key", n);
    const struct host *v = map(t, layer, "self_attn.value", n);
    struct host *h = host_like(q);

    if (lm_is(t, "aft_conv"))
        ref_aft_conv_fwd(q, k, v, param(t, layer, "self_attn", "w"), NULL, true, h, host_like(q));
    else if (lm_is(t, "aft_simple"))
        h = define_aft(q, k, v, NULL, ATTNCL_AFT_SIMPLE, 0, true);
    else
        h = define_aft(q, k, v, param(t, layer, "self_attn", "pos_bias"),
                       lm_is(t, "aft_full") ? ATTNCL_AFT_FULL : ATTNCL_AFT_LOCAL,
                       t->c->sizes.window, true);
    return map(t, layer, "self_attn.output", h);
}

static struct host *attention(const struct case_data *t, int64_t layer, const struct host *n)
{
    const struct sizes *s = &t->c->sizes;
    const int64_t steps = n->dim[0];
    const struct ref_mha params = {
        param(t, layer, "self_attn.query.linear", "weight"),
        param(t, layer, "self_attn.query.linear", "bias"),
        param(t, layer, "self_attn.key.linear", "weight"),
        param(t, layer, "self_attn.key.linear", "bias"),
        param(t, layer, "self_attn.value.linear", "weight"),
        param(t, layer, "self_attn.value.linear", "bias"),
        param(t, layer, "self_attn.output", "weight"),
        param(t, layer, "self_attn.output", "bias"),
    };
    struct host *h = host_like(n);

    ref_multi_head_attention(&params, (struct ref_attention){.causal = true}, s->heads, true, n, n,
                             n, h, host_new(ATTNCL_F32, DIMS(1, s->heads, steps, steps)));
    return h;
}

// x += attn(LN x);  x += ffn(LN x)
static struct host *pre_norm_layer(const struct case_data *t, int64_t layer, const struct host *x)
{
    struct host *n = norm(t, layer, "norm_self_attn", x);
    struct host *h =
        define_add(x, lm_is(t, "transformer") ? attention(t, layer, n) : aft(t, layer, n));

    n = map(t, layer, "feed_forward.layer1", norm(t, layer, "norm_ff", h));
    return define_add(h, map(t, layer, "feed_forward.layer2", define_activation(n, ATTNCL_RELU)));
}

static struct host *embed(const struct case_data *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    const struct host *weight = case_data_whole(t, "src_embed.linear.weight");
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, s->C));

    for (int64_t p = 0; p < tokens->dim[0]; ++p)
        for (int64_t c = 0; c < s->C; ++c) {
            const double angle = (double)p / pow(10000.0, (double)(c / 2 * 2) / (double)s->C);
            x->data[p * s->C + c] =
                weight->data[(int64_t)tokens->data[p] * s->C + c] * sqrt((double)s->C) +
                (c % 2 ? cos(angle) : sin(angle));
        }
    return x;
}

static struct ref_feedback_layer feedback_layer(const struct case_data *t, int64_t l)
{
    const bool own = lm_is(t, "feedback");

    return (struct ref_feedback_layer){
        .norm_attn_weight = param(t, l, "norm_self_attn", "weight"),
        .norm_attn_bias = param(t, l, "norm_self_attn", "bias"),
        .query_weight = param(t, l, "attn.query.linear", "weight"),
        .key_weight = own ? param(t, l, "attn.key.linear", "weight")
                          : case_data_whole(t, "transformer.key.linear.weight"),
        .value_weight = own ? param(t, l, "attn.value.linear", "weight")
                            : case_data_whole(t, "transformer.value.linear.weight"),
        .value_bias = own ? param(t, l, "attn.value.linear", "bias") : NULL,
        .output_weight = param(t, l, "attn.output", "weight"),
        .output_bias = param(t, l, "attn.output", "bias"),
        .places = param(t, l, "attn", "key_pos_embeddings"),
        .u = param(t, l, "attn", "query_pos_bias"),
        .place_bias = own ? NULL : param(t, l, "attn", "key_pos_bias"),
        .norm_ffn_weight = param(t, l, "norm_ff", "weight"),
        .norm_ffn_bias = param(t, l, "norm_ff", "bias"),
        .layer1_weight = param(t, l, "feed_forward.layer1", "weight"),
        .layer1_bias = param(t, l, "feed_forward.layer1", "bias"),
        .layer2_weight = param(t, l, "feed_forward.layer2", "weight"),
        .layer2_bias = param(t, l, "feed_forward.layer2", "bias"),
    };
}

// Neither a scale nor positions.
static struct host *feedback_lm(const struct case_data *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;
    struct ref_feedback_layer layers[16];
    const struct define_feedback params = {
        layers, s->layers, case_data_whole(t, "transformer.weights"),
        case_data_whole(t, "transformer.norm.weight"), case_data_whole(t, "transformer.norm.bias")};
    struct host *x = host_new(ATTNCL_F32, DIMS(tokens->dim[0], 1, s->C));

    for (int64_t l = 0; l < s->layers; ++l)
        layers[l] = feedback_layer(t, l);
    ref_embedding_fwd(tokens, case_data_whole(t, "src_embed.weight"), 1, x);
    return define_linear(define_feedback(&params, x), case_data_whole(t, "generator.weight"),
                         case_data_whole(t, "generator.bias"));
}

struct host *lm_define(const struct case_data *t, const struct host *tokens)
{
    const struct sizes *s = &t->c->sizes;

    if (lm_is_feedback(t))
        return feedback_lm(t, tokens);
    struct host *x = embed(t, tokens);
    for (int64_t layer = 0; layer < s->layers; ++layer)
        x = lm_is(t, "gmlp") ? gmlp_layer(t, layer, x) : pre_norm_layer(t, layer, x);
    x = define_layer_norm(x, case_data_whole(t, "encoder.norm.weight"),
                          case_data_whole(t, "encoder.norm.bias"));
    return define_linear(x, case_data_whole(t, "generator.projection.weight"),
                         case_data_whole(t, "generator.projection.bias"));
}
