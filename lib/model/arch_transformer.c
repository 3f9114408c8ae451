// SPDX-License-Identifier: MIT
//
// feed_forward, transformer_layer, encoder.

#include "attncl/ops.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_classes.h"
#include "model/block_embed.h"
#include "model/block_encoder.h"
#include "model/config.h"

static void ffn_load(struct params *p, const void *settings)
{
    attncl_ffn_params ignored = ATTNCL_FFN_PARAMS_INIT;
    attncl__ffn_params(p, settings, &ignored);
}

static attncl_status ffn_build(struct build *b, const void *settings)
{
    const struct ffn_settings *s = settings;
    attncl_ffn_params params = ATTNCL_FFN_PARAMS_INIT;
    attncl_value x;
    TRY(attncl__input_trailing(b, "x", 1, &s->d_model, &x));
    attncl__ffn_params(&b->params, s, &params);
    attncl_graph_output(
        b->graph, "output",
        attncl_feed_forward(b->graph, &params, s->activation, x, ATTNCL_NONE_VALUE));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_feed_forward = {
    .name = "feed_forward",
    .example = "{\"d_model\": 64, \"d_ff\": 256}",
    .settings_bytes = sizeof(struct ffn_settings),
    .keys = attncl__ffn_keys,
    .load = ffn_load,
    .build = ffn_build,
};

// -- transformer_layer, encoder

struct layers_settings {
    struct encoder_settings encoder;
    struct embed_settings embed; // n_vocab 0: the input is x, not tokens
    struct classes_settings classes;
    bool batch_first;
};

// [T, B, C] <-> [B, T, C], a view.
static attncl_value swap_axes(attncl_graph *g, attncl_value x)
{
    static const int order[] = {1, 0, 2};
    return attncl_permute(g, x, order);
}

// tokens [T, B] or [B, T]
static attncl_status token_input(struct build *b, const struct embed_settings *s,
                                 attncl_layout layout, attncl_value *x_ret)
{
    static const int64_t dim[2][2] = {{AXIS('T'), AXIS('B')}, {AXIS('B'), AXIS('T')}};
    const int time_axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    attncl_value tokens;
    TRY(attncl__input_index(b, "tokens", 2, dim[time_axis], s->n_vocab, &tokens));
    TRY(attncl__check_length("tokens", attncl__input_find(b, "tokens")->dim[time_axis], s->limit));
    *x_ret = attncl__embed(b, s, tokens, ATTNCL_NONE_VALUE, layout);
    return ATTNCL_OK;
}

// x and its mask.  Layers that mix along the first axis alone get a copy of x with that order.
static attncl_status layer_inputs(struct build *b, const struct layers_settings *s,
                                  struct block_call *call, attncl_value *x_ret)
{
    const struct block_settings *block = &s->encoder.block;
    const bool has_tokens = s->embed.n_vocab > 0;
    const int64_t width = attncl__block_width(block);
    call->layout = s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    if (has_tokens)
        TRY(token_input(b, &s->embed, call->layout, x_ret));
    else
        TRY(attncl__input_sequence(b, call->layout, "x", width, attncl__block_limit(block), x_ret));

    const int64_t *dim = attncl__input_find(b, has_tokens ? "tokens" : "x")->dim;
    const int64_t n_seq = dim[s->batch_first ? 1 : 0], n_batch = dim[s->batch_first ? 0 : 1];
    TRY(attncl__input_mask(b, n_seq, attncl__block_mask_batch(block, n_batch), &call->mask));
    if (s->batch_first && block->kind != BLOCK_TRANSFORMER) {
        const int64_t swapped[3] = {n_seq, n_batch, width};
        *x_ret = attncl_reshape(b->graph, swap_axes(b->graph, *x_ret), 3, swapped);
    }
    return ATTNCL_OK;
}

static void layer_output(struct build *b, const struct layers_settings *s, attncl_value y)
{
    if (s->batch_first && s->encoder.block.kind != BLOCK_TRANSFORMER)
        y = swap_axes(b->graph, y);
    attncl_graph_output(b->graph, "output", y);
}

static const struct key layer_table[] = {
    KEYS_OF(attncl__block_keys, AT(layers_settings, encoder.block)),
    {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)},
    {0},
};

static void layer_load(struct params *p, const void *settings)
{
    attncl__block_load(p, &((const struct layers_settings *)settings)->encoder.block);
}

static attncl_status layer_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    struct block_call call = {0};
    attncl_value x;
    TRY(layer_inputs(b, s, &call, &x));
    layer_output(b, s, attncl__block(b, &s->encoder.block, &call, x));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_transformer_layer = {
    .name = "transformer_layer",
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256}",
    .settings_bytes = sizeof(struct layers_settings),
    .keys = layer_table,
    .load = layer_load,
    .build = layer_build,
};

static attncl_status check_encoder(void *settings)
{
    struct layers_settings *s = settings;
    if (s->embed.n_vocab > 0)
        attncl__embed_set_limit(&s->embed, attncl__block_limit(&s->encoder.block));
    return ATTNCL_OK;
}

static const struct key encoder_table[] = {
    KEYS_OF(attncl__encoder_keys, AT(layers_settings, encoder)),
    {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)},
    {"n_vocab", KEY_INT, AT(layers_settings, embed.n_vocab), .min = 1, OR(0)},
    KEYS_OF(attncl__classes_keys, AT(layers_settings, classes)),
    KEYS_OF(attncl__embed_keys, AT(layers_settings, embed), .when = {"n_vocab", true, {"0"}}),
    CHECK(check_encoder),
    {0},
};

static void encoder_load(struct params *p, const void *settings)
{
    const struct layers_settings *s = settings;
    if (s->embed.n_vocab > 0)
        attncl__embed_load(p, &s->embed);
    attncl__encoder_load(p, &s->encoder);
    attncl__classes_load(p, &s->classes);
}

// Layers that mix along the first axis alone have swapped the axes of x.
static attncl_status class_output(struct build *b, const struct layers_settings *s, attncl_value x,
                                  attncl_value valid_lens)
{
    const bool is_swapped = s->batch_first && s->encoder.block.kind != BLOCK_TRANSFORMER;
    const attncl_layout layout =
        s->batch_first && !is_swapped ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    attncl_value y;
    TRY(attncl__classes(b, &s->classes, layout, x, valid_lens, &y));
    if (is_swapped && s->classes.pool == POOL_NONE)
        y = swap_axes(b->graph, y);
    attncl__output(b, "output", y);
    return ATTNCL_OK;
}

// How many positions of each sequence are no padding.  Layers that mix by position take none.
static attncl_status length_input(struct build *b, const struct layers_settings *s,
                                  struct block_call *call)
{
    const attncl_array *x = attncl__input_find(b, s->embed.n_vocab > 0 ? "tokens" : "x");
    const int64_t n_batch = x->dim[s->batch_first ? 0 : 1];
    if (s->encoder.block.kind != BLOCK_TRANSFORMER || !attncl__input_given(b, "valid_lens"))
        return ATTNCL_OK;
    TRY(attncl__input_int(b, "valid_lens", 1, &n_batch, &call->valid_lens));
    if (b->probe && call->mask.id) // both are described, one of them is given
        call->valid_lens = ATTNCL_NONE_VALUE;
    return ATTNCL_OK;
}

static attncl_status encoder_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    struct block_call call = {0};
    attncl_value x;
    REQUIRE(!b->for_loss || s->classes.n > 0, ATTNCL_ERR_UNSUPPORTED,
            "the encoder has no classes to compare with targets: n_classes is 0");
    TRY(layer_inputs(b, s, &call, &x));
    TRY(length_input(b, s, &call));
    x = attncl__encoder(b, &s->encoder, &call, x);
    if (s->classes.n > 0)
        return class_output(b, s, x, call.valid_lens);
    layer_output(b, s, x);
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_encoder = {
    .name = "encoder",
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2}",
    .settings_bytes = sizeof(struct layers_settings),
    .keys = encoder_table,
    .load = encoder_load,
    .build = encoder_build,
    .target = TARGET_LABELS,
};
