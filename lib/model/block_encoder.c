// SPDX-License-Identifier: MIT
//
// Layers of an encoder, and the encoder.
//
//     norm_first    x += attn(z, z, z, mask), z = LN(x);   x += FF(LN(x))
//     else          x = LN(x + attn(x, x, x, mask));   x = LN(x + FF(x))
//     post_norm     x += LN''(attn(z, z, z, mask)), z = LN(x); FF likewise
//     parallel      x += attn(z, z, z, mask) + FF(LN'(x)), z = LN(x): both norms read the same x
//
// A decoder layer also has x += attn(z, memory, memory), with its own norm, between the two.
//
// A gMLP block has its own norms and residual.  Training applies dropout to the results of attn and FF,
// to FF's hidden channels and to the attention weights.

#include <stdio.h>

#include "model/block_models.h"

const struct choice attncl__lm_layers[] = {
    {"feedback_kv", LAYER_FEEDBACK_KV},
    {"feedback", LAYER_FEEDBACK},
    {"aft_local", ATTNCL_AFT_LOCAL},
    {"aft_full", ATTNCL_AFT_FULL},
    {"aft_simple", ATTNCL_AFT_SIMPLE},
    {"gmlp", LAYER_GMLP},
    {"aft_conv", ATTNCL_AFT_CONV},
    {"transformer", LAYER_TRANSFORMER},
    {0},
};

const char *attncl__layer_word(int layer)
{
    size_t i = 0;
    while (attncl__lm_layers[i].value != layer)
        ++i;
    return attncl__lm_layers[i].word;
}

static attncl_status check_block(void *settings)
{
    const struct block_settings *s = settings;
    REQUIRE(s->norm_first || s->layer != LAYER_GMLP, ATTNCL_ERR_FORMAT,
            "norm_first is false, layer gmlp has its norm first");
    REQUIRE(!s->post_norm || (s->norm_first && !s->parallel), ATTNCL_ERR_FORMAT,
            "post_norm is true, which needs norm_first true and parallel false");
    REQUIRE(s->norm_first || !s->parallel, ATTNCL_ERR_FORMAT,
            "norm_first is false, parallel is true: parallel layers have their norms first");
    return ATTNCL_OK;
}

static const struct choice norms[] = {{"layer", NORM_LAYER}, {"rms", NORM_RMS}, {0}};

const struct key attncl__block_keys[] = {
    {"layer", KEY_WORD, AT(block_settings, layer), .choices = attncl__lm_layers + N_LM_ONLY_LAYERS},
    {"norm_first", KEY_BOOL, AT(block_settings, norm_first), OR(true)},
    NORM_EPS_KEY(AT(block_settings, norm_eps)),
    {"norm", KEY_WORD, AT(block_settings, norm), .choices = norms, OR_WORD("layer"), OFF("gmlp")},
    {"post_norm", KEY_BOOL, AT(block_settings, post_norm), OR(false), OFF("gmlp")},
    {"parallel", KEY_BOOL, AT(block_settings, parallel), OR(false), OFF("gmlp")},
    KEYS_OF(attncl__mha_keys, AT(block_settings, mha), ON("transformer")),
    KEYS_OF(attncl__aft_local_keys, AT(block_settings, aft), ON("aft_local")),
    KEYS_OF(attncl__aft_full_keys, AT(block_settings, aft), ON("aft_full")),
    KEYS_OF(attncl__aft_simple_keys, AT(block_settings, aft), ON("aft_simple")),
    KEYS_OF(attncl__aft_conv_keys, AT(block_settings, aft), ON("aft_conv")),
    KEYS_OF(attncl__ffn_keys, AT(block_settings, ffn), OFF("gmlp")),
    KEYS_OF(attncl__gmlp_keys, AT(block_settings, gmlp), ON("gmlp")),
    CHECK(check_block),
    {0},
};

int64_t attncl__block_width(const struct block_settings *s)
{
    return s->layer == LAYER_GMLP ? s->gmlp.d_model : s->ffn.d_model;
}

int64_t attncl__block_limit(const struct block_settings *s)
{
    return s->layer == LAYER_GMLP          ? s->gmlp.seq_len
           : s->layer == LAYER_TRANSFORMER ? 0
                                           : s->aft.seq_len;
}

bool attncl__block_has_kv_cache(const struct block_settings *s)
{
    return s->layer == LAYER_TRANSFORMER;
}

bool attncl__block_state_has_type(const struct block_settings *s)
{
    const bool has_window = s->layer != ATTNCL_AFT_LOCAL || s->aft.window > 0;
    return s->layer != ATTNCL_AFT_SIMPLE && has_window; // else the state is only sums
}

// The residual that a layer's last kernel adds; null: add_residual() adds it after dropout.
static attncl_value choose_fused_residual(const struct build *b, attncl_value x)
{
    return b->dropout.p > 0 ? ATTNCL_NONE_VALUE : x;
}

static int batch_axis(const struct block_call *call)
{
    return call->layout == ATTNCL_LAYOUT_BATCH_FIRST ? 0 : 1;
}

static attncl_value add_residual(struct build *b, const struct block_call *call, attncl_value y,
                                 attncl_value x)
{
    if (b->dropout.p == 0 || !x.id)
        return y;
    return attncl__add_dropout(b->graph, &b->dropout, batch_axis(call), y, x);
}

// x + FF(z)
static attncl_value add_feed_forward(struct build *b, const struct ffn_settings *s,
                                     const struct block_call *call, attncl_value z, attncl_value x)
{
    const attncl_dropout_desc hidden = attncl__next_dropout(&b->dropout, batch_axis(call));
    attncl_ffn_params params = ATTNCL_FFN_PARAMS_INIT;
    attncl__params_enter(&b->params, "feed_forward");
    attncl__ffn_params(&b->params, s, &params);
    params.dropout = &hidden;
    const attncl_value y =
        attncl_feed_forward(b->graph, &params, s->activation, z, choose_fused_residual(b, x));
    attncl__params_leave(&b->params);
    return add_residual(b, call, y, x);
}

static attncl_attention_inputs make_self_inputs(const struct block_call *call, attncl_value z,
                                                attncl_value x)
{
    return (attncl_attention_inputs){.struct_size = sizeof(attncl_attention_inputs),
                                     .query = z,
                                     .key = z,
                                     .value = z,
                                     .mask = call->mask,
                                     .valid_lens = call->valid_lens,
                                     .residual = x};
}

// x + attn(z, z, z, mask)
static attncl_value add_aft(struct build *b, const struct aft_settings *s,
                            const struct block_call *call, attncl_value z, attncl_value x)
{
    const struct decode_at at = {call->position, call->last, call->row};
    const attncl_aft_desc desc = attncl__aft_desc(s, call->causal);
    const attncl_attention_inputs in = make_self_inputs(call, z, choose_fused_residual(b, x));
    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    attncl__aft_params(&b->params, s, &params);
    if (at.position.id || at.last.id)
        return attncl__aft_decode(b->graph, &desc, &params, b->state_dtype, z, &at, x);
    return add_residual(b, call, attncl_aft(b->graph, &desc, &params, &in), x);
}

// Outputs weights [B, H, T, S] as [T, S, B, H], the layout of arch mha, under the layer's name.
static void output_attention(struct build *b, attncl_value weights)
{
    static const int to_tsbh[] = {2, 3, 0, 1};
    char name[PARAM_NAME_BYTES + 8];

    snprintf(name, sizeof name, "%sattn", b->params.prefix);
    attncl_graph_output(b->graph, name, attncl_permute(b->graph, weights, to_tsbh));
}

// Attention of a whole sequence, with dropout of its weights, which are also output if asked for.
static attncl_value add_attention(struct build *b, const struct mha_settings *s,
                                  const struct block_call *call, attncl_attention_desc desc,
                                  const attncl_mha_params *params,
                                  const attncl_attention_inputs *in)
{
    const attncl_dropout_desc dropped = attncl__next_dropout(&b->dropout, batch_axis(call));
    attncl_value weights;
    desc.layout = call->layout;
    desc.dropout = &dropped;
    const attncl_value y = attncl_multi_head_attention(b->graph, &desc, params, s->heads, in,
                                                       b->show_attention ? &weights : NULL);
    if (b->show_attention)
        output_attention(b, weights);
    return y;
}

static attncl_value add_mha(struct build *b, const struct mha_settings *s, double norm_eps,
                            const struct block_call *call, attncl_value z, attncl_value x)
{
    const attncl_attention_inputs in = make_self_inputs(call, z, choose_fused_residual(b, x));
    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    const int64_t n_steps = attncl_graph_shape(b->graph, z).dim[1 - batch_axis(call)];
    const int64_t n = call->position.id ? b->n_positions : n_steps;
    attncl_attention_desc desc = attncl__mha_desc(b, s, n);
    const struct cache_desc cache = {.limit = b->n_positions,
                                     .dtype = b->state_dtype,
                                     .desc = &desc,
                                     .last = call->last,
                                     .row = call->row,
                                     .last_position = call->last_position};

    attncl__mha_params(&b->params, s, &params);
    desc.qk_norm_eps = (float)norm_eps;
    if (call->position.id || call->last.id)
        return attncl__multi_head_attention_decode(b->graph, &params, s->heads, &cache, z,
                                                   call->position, x);
    desc.causal = call->causal;
    return add_residual(b, call, add_attention(b, s, call, desc, &params, &in), x);
}

// x + attn(z, memory, memory)
static attncl_value add_memory_attention(struct build *b, const struct mha_settings *s,
                                         const struct block_call *call, attncl_value z,
                                         attncl_value x)
{
    const attncl_attention_inputs in = {.struct_size = sizeof in,
                                        .query = z,
                                        .key = call->memory,
                                        .value = call->memory,
                                        .valid_lens = call->memory_lens,
                                        .residual = choose_fused_residual(b, x)};
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;

    attncl__mha_params(&b->params, s, &params);
    if (call->position.id)
        return attncl__memory_attention_step(b, s, call, &params, z, x);
    return add_residual(b, call, add_attention(b, s, call, desc, &params, &in), x);
}

static attncl_value add_gmlp(struct build *b, const struct gmlp_settings *s,
                             const struct block_call *call, attncl_value x)
{
    attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    const struct decode_at at = {call->position, call->last, call->row};
    attncl__gmlp_params(&b->params, s, &gate, &params);
    return at.position.id || at.last.id
               ? attncl__gmlp_decode(b->graph, &params, b->state_dtype, x, &at)
               : attncl_gmlp_block(b->graph, &params, x, call->causal, call->mask);
}

static struct norm_params norm_params(struct params *p, const struct block_settings *s,
                                      const char *name)
{
    return attncl__norm_params(p, name, s->norm, attncl__block_width(s));
}

// x + LN(y)
static attncl_value add_normed(struct build *b, const struct block_settings *s,
                               const struct block_call *call, const char *name, attncl_value y,
                               attncl_value x)
{
    y = attncl__add_norm(b, norm_params(&b->params, s, name), s->norm_eps, y);
    return b->dropout.p > 0 ? add_residual(b, call, y, x) : attncl_add(b->graph, y, x);
}

static attncl_value add_memory_sublayer(struct build *b, const struct block_settings *s,
                                        const struct block_call *call, attncl_value x)
{
    const struct norm_params norm = norm_params(&b->params, s, "norm_src_attn");
    const attncl_value z = s->norm_first ? attncl__add_norm(b, norm, s->norm_eps, x) : x;
    attncl__params_enter(&b->params, "src_attn");
    x = add_memory_attention(b, &s->mha, call, z, x);
    attncl__params_leave(&b->params);
    return s->norm_first ? x : attncl__add_norm(b, norm, s->norm_eps, x);
}

attncl_value attncl__add_block(struct build *b, const struct block_settings *s,
                               const struct block_call *call, attncl_value x)
{
    if (s->layer == LAYER_GMLP)
        return add_gmlp(b, &s->gmlp, call, x);

    struct params *p = &b->params;
    const struct norm_params norm_attn = norm_params(p, s, "norm_self_attn");
    attncl_value z = s->norm_first ? attncl__add_norm(b, norm_attn, s->norm_eps, x) : x;
    const attncl_value given = attncl__layer_row_at(b->graph, x, call->row);
    const attncl_value residual = s->post_norm ? ATTNCL_NONE_VALUE : given;
    attncl__params_enter(p, "self_attn");
    x = s->layer == LAYER_TRANSFORMER ? add_mha(b, &s->mha, s->norm_eps, call, z, residual)
                                      : add_aft(b, &s->aft, call, z, residual);
    attncl__params_leave(p);
    if (s->post_norm)
        x = add_normed(b, s, call, "post_norm_self_attn", x, given);
    if (!s->norm_first)
        x = attncl__add_norm(b, norm_attn, s->norm_eps, x);
    if (s->reads_memory)
        x = add_memory_sublayer(b, s, call, x);
    const struct norm_params norm_ff = norm_params(p, s, "norm_ff");
    z = s->norm_first ? attncl__add_norm(b, norm_ff, s->norm_eps, s->parallel ? given : x) : x;
    if (s->post_norm)
        return add_normed(b, s, call, "post_norm_ff",
                          add_feed_forward(b, &s->ffn, call, z, residual), x);
    x = add_feed_forward(b, &s->ffn, call, z, x);
    return s->norm_first ? x : attncl__add_norm(b, norm_ff, s->norm_eps, x);
}

// Settings that differ between layers.
static const struct key layer_keys[] = {
    {"window_layers", KEY_FLAGS, AT(encoder_settings, window_layers), OR(1)},
    {"rope_layers", KEY_FLAGS, AT(encoder_settings, rope_layers), OR(1), WHEN("rope", "true")},
    {"rope_local_theta", KEY_NUMBER, AT(encoder_settings, rope_local_theta), OR(0),
     WHEN("rope", "true")},
    {0},
};

const struct key attncl__encoder_keys[] = {
    KEYS_OF(attncl__block_keys, AT(encoder_settings, block)),
    FINAL_NORM_KEYS(AT(encoder_settings, final_norm)),
    {"final_norm_eps", KEY_NUMBER, AT(encoder_settings, final_norm_eps), .min = 1e-30,
     OR_AS("layer_norm_eps")},
    {"n_layers", KEY_INT, AT(encoder_settings, n_layers), .min = 0},
    KEYS_OF(layer_keys, 0, ON("transformer")),
    {0},
};

static struct block_settings block_of_layer(const struct encoder_settings *s, int64_t i)
{
    struct block_settings block = s->block;
    struct mha_settings *const mha = &block.mha;
    mha->window = attncl__json_flag(&s->window_layers, i) ? mha->window : 0;
    mha->rope = mha->rope && attncl__json_flag(&s->rope_layers, i);
    mha->is_local = mha->window > 0 && s->rope_local_theta > 0;
    if (mha->is_local) {
        mha->rotary.theta = s->rope_local_theta;
        mha->rotary.scaling = ATTNCL_ROTARY_UNSCALED;
    }
    return block;
}

attncl_value attncl__add_encoder(struct build *b, const struct encoder_settings *s,
                                 const struct block_call *call, attncl_value x)
{
    struct params *p = &b->params;
    struct block_call of_layer = *call;
    for (int64_t i = 0; i < s->n_layers && p->status == ATTNCL_OK; ++i) {
        attncl__params_enter(p, "layers.%d", (int)i);
        const struct block_settings block = block_of_layer(s, i);
        if (i == s->n_layers - 1)
            of_layer.row = call->last;
        x = attncl__add_block(b, &block, &of_layer, x);
        attncl__params_leave(p);
    }
    if (s->n_layers == 0)
        x = attncl__layer_row_at(b->graph, x, call->last);
    if (s->final_norm == PRESENT_NEVER)
        return x;
    const struct norm_params norm =
        s->final_norm == PRESENT_ALWAYS || s->block.norm == NORM_RMS
            ? norm_params(p, &s->block, "norm")
            : attncl__norm_optional(p, "norm", attncl__block_width(&s->block));
    return norm.weight.id ? attncl__add_norm(b, norm, s->final_norm_eps, x) : x;
}
