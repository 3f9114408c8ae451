// SPDX-License-Identifier: MIT
//
// Layers of an encoder, and the encoder.  Pre-norm:
//
//     x += attn(z, z, z, mask), z = LN(x);   x += FF(LN(x));   after the last layer LN
//
// A gMLP block has its norms and residual inside.

#include <stdio.h>

#include "attncl/ops.h"
#include "base/try.h"
#include "model/block_encoder.h"
#include "model/config.h"

static const float norm_eps = 1e-5f;

struct norm_params {
    attncl_value weight, bias; // [C]
};

static struct norm_params norm_params(struct params *p, const char *name, int64_t width)
{
    struct norm_params norm;
    attncl__params_enter(p, "%s", name);
    norm.weight = PARAM(p, "weight", width);
    norm.bias = PARAM(p, "bias", width);
    attncl__params_leave(p);
    return norm;
}

static attncl_value apply_norm(struct build *b, const char *name, int64_t width, attncl_value x)
{
    const struct norm_params norm = norm_params(&b->params, name, width);
    attncl_graph_push_scope(b->graph, name);
    const attncl_value y = attncl_layer_norm(b->graph, x, norm.weight, norm.bias, norm_eps);
    attncl_graph_pop_scope(b->graph);
    return y;
}

attncl_status attncl__block_configure(struct config *config, struct block_settings *ret)
{
    enum { GMLP = 100, TRANSFORMER };
    static const struct choice layers[] = {
        {"aft_local", ATTNCL_AFT_LOCAL},   {"aft_full", ATTNCL_AFT_FULL},
        {"aft_simple", ATTNCL_AFT_SIMPLE}, {"gmlp", GMLP},
        {"aft_conv", ATTNCL_AFT_CONV},     {"transformer", TRANSFORMER},
    };
    int layer;
    TRY(attncl__config_choice(config, "layer", layers, N_CHOICES(layers), NULL, &layer));
    switch (layer) {
    case GMLP:
        ret->kind = BLOCK_GMLP;
        return attncl__gmlp_configure(config, &ret->gmlp);
    case TRANSFORMER:
        ret->kind = BLOCK_TRANSFORMER;
        TRY(attncl__mha_configure(config, &ret->mha));
        break;
    default:
        ret->kind = BLOCK_AFT;
        TRY(attncl__aft_configure(config, (attncl_aft_kind)layer, &ret->aft));
    }
    return attncl__ffn_configure(config, &ret->ffn);
}

void attncl__block_load(struct params *p, const struct block_settings *s)
{
    attncl_aft_params aft = ATTNCL_AFT_PARAMS_INIT;
    attncl_mha_params mha = ATTNCL_MHA_PARAMS_INIT;
    attncl_ffn_params ffn = ATTNCL_FFN_PARAMS_INIT;
    attncl_gmlp_params gmlp = ATTNCL_GMLP_PARAMS_INIT;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    if (s->kind == BLOCK_GMLP) {
        attncl__gmlp_params(p, &s->gmlp, &gate, &gmlp);
        return;
    }
    norm_params(p, "norm_self_attn", s->ffn.d_model);
    attncl__params_enter(p, "self_attn");
    if (s->kind == BLOCK_TRANSFORMER)
        attncl__mha_params(p, &s->mha, &mha);
    else
        attncl__aft_params(p, &s->aft, &aft);
    attncl__params_leave(p);
    norm_params(p, "norm_ff", s->ffn.d_model);
    attncl__params_enter(p, "feed_forward");
    attncl__ffn_params(p, &s->ffn, &ffn);
    attncl__params_leave(p);
}

int64_t attncl__block_width(const struct block_settings *s)
{
    return s->kind == BLOCK_GMLP ? s->gmlp.d_model : s->ffn.d_model;
}

int64_t attncl__block_limit(const struct block_settings *s)
{
    return s->kind == BLOCK_GMLP ? s->gmlp.seq_len : s->kind == BLOCK_AFT ? s->aft.seq_len : 0;
}

bool attncl__block_keeps_all(const struct block_settings *s)
{
    return s->kind == BLOCK_TRANSFORMER;
}

int64_t attncl__block_mask_batch(const struct block_settings *s, int64_t n_batch)
{
    return s->kind == BLOCK_GMLP ? 1 : n_batch; // a gating unit's mask is shared by the batch
}

// x + FF(LN(x))
static attncl_value feed_forward(struct build *b, const struct ffn_settings *s, attncl_value x)
{
    attncl_ffn_params params = ATTNCL_FFN_PARAMS_INIT;
    const attncl_value z = apply_norm(b, "norm_ff", s->d_model, x);
    attncl__params_enter(&b->params, "feed_forward");
    attncl__ffn_params(&b->params, s, &params);
    const attncl_value y = attncl_feed_forward(b->graph, &params, s->activation, z, x);
    attncl__params_leave(&b->params);
    return y;
}

// x + attn(z, z, z, mask)
static attncl_value aft(struct build *b, const struct aft_settings *s, attncl_value z, bool causal,
                        attncl_value mask, attncl_value x)
{
    const attncl_aft_desc desc = attncl__aft_desc(s, causal);
    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    attncl__aft_params(&b->params, s, &params);
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = z, .key = z, .value = z, .mask = mask, .residual = x};
    return attncl_aft(b->graph, &desc, &params, &in);
}

// [B, H, T, S] as mha gives them, [T, S, B, H], under the layer's name.
static void show_attention(struct build *b, attncl_value weights)
{
    static const int to_tsbh[] = {2, 3, 0, 1};
    char name[PARAM_NAME_BYTES + 8];

    snprintf(name, sizeof name, "%sattn", b->params.prefix);
    attncl_graph_output(b->graph, name, attncl_permute(b->graph, weights, to_tsbh));
}

static attncl_value mha(struct build *b, const struct mha_settings *s, attncl_value z, bool causal,
                        attncl_value mask, attncl_value x)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    desc.causal = causal;
    attncl__mha_params(&b->params, s, &params);
    const attncl_attention_inputs in = {
        .struct_size = sizeof in, .query = z, .key = z, .value = z, .mask = mask, .residual = x};
    attncl_value weights;
    const attncl_value y = attncl_multi_head_attention(b->graph, &desc, &params, s->heads, &in,
                                                       b->shows_attention ? &weights : NULL);
    if (b->shows_attention)
        show_attention(b, weights);
    return y;
}

attncl_value attncl__block(struct build *b, const struct block_settings *s, attncl_value x,
                           bool causal, attncl_value mask)
{
    if (s->kind == BLOCK_GMLP) {
        attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
        attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
        attncl__gmlp_params(&b->params, &s->gmlp, &gate, &params);
        return attncl_gmlp_block(b->graph, &params, x, causal, mask);
    }
    const attncl_value z = apply_norm(b, "norm_self_attn", s->ffn.d_model, x);
    attncl__params_enter(&b->params, "self_attn");
    x = s->kind == BLOCK_AFT ? aft(b, &s->aft, z, causal, mask, x)
                             : mha(b, &s->mha, z, causal, mask, x);
    attncl__params_leave(&b->params);
    return feed_forward(b, &s->ffn, x);
}

// x [B, C] + attn(z) at a position
static attncl_value aft_step(struct build *b, const struct aft_settings *s, attncl_value z,
                             attncl_value position, attncl_value x)
{
    const attncl_aft_desc desc = attncl__aft_desc(s, true);
    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    attncl__aft_params(&b->params, s, &params);
    return attncl_aft_step(b->graph, &desc, &params, z, position, x);
}

static attncl_value mha_step(struct build *b, const struct mha_settings *s, attncl_value z,
                             attncl_value position, attncl_value x)
{
    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(&b->params, s, &params);
    return attncl_multi_head_attention_step(b->graph, &params, s->heads, b->n_positions, z,
                                            position, x);
}

attncl_value attncl__block_step(struct build *b, const struct block_settings *s, attncl_value x,
                                attncl_value position)
{
    if (s->kind == BLOCK_GMLP) {
        attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
        attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
        attncl__gmlp_params(&b->params, &s->gmlp, &gate, &params);
        return attncl_gmlp_step(b->graph, &params, x, position);
    }
    const attncl_value z = apply_norm(b, "norm_self_attn", s->ffn.d_model, x);
    attncl__params_enter(&b->params, "self_attn");
    x = s->kind == BLOCK_AFT ? aft_step(b, &s->aft, z, position, x)
                             : mha_step(b, &s->mha, z, position, x);
    attncl__params_leave(&b->params);
    return feed_forward(b, &s->ffn, x);
}

attncl_status attncl__encoder_configure(struct config *config, struct encoder_settings *ret)
{
    TRY(attncl__block_configure(config, &ret->block));
    return attncl__config_int(config, "n_layers", 0, &ret->n_layers);
}

void attncl__encoder_load(struct params *p, const struct encoder_settings *s)
{
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        attncl__params_enter(p, "layers.%d", (int)i);
        attncl__block_load(p, &s->block);
        attncl__params_leave(p);
    }
    norm_params(p, "norm", attncl__block_width(&s->block));
}

attncl_value attncl__encoder(struct build *b, const struct encoder_settings *s, attncl_value x,
                             bool causal, attncl_value mask)
{
    for (int64_t i = 0; i < s->n_layers; ++i) {
        attncl__params_enter(&b->params, "layers.%d", (int)i);
        x = attncl__block(b, &s->block, x, causal, mask);
        attncl__params_leave(&b->params);
    }
    return apply_norm(b, "norm", attncl__block_width(&s->block), x);
}

attncl_value attncl__encoder_step(struct build *b, const struct encoder_settings *s, attncl_value x,
                                  attncl_value position)
{
    for (int64_t i = 0; i < s->n_layers; ++i) {
        attncl__params_enter(&b->params, "layers.%d", (int)i);
        x = attncl__block_step(b, &s->block, x, position);
        attncl__params_leave(&b->params);
    }
    return apply_norm(b, "norm", attncl__block_width(&s->block), x);
}
