// SPDX-License-Identifier: MIT
//
// feed_forward, transformer_layer, encoder.

#include "model/block_models.h"

static attncl_status ffn_build(struct build *b, const void *settings)
{
    const struct ffn_settings *s = settings;
    attncl_ffn_params params = ATTNCL_FFN_PARAMS_INIT;
    const attncl_value x = attncl__input(b, "x");
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
    .inputs = PORTS(PORT("x", F32, "... d_model")),
    .outputs = PORTS(PORT("output", F32, "... d_model")),
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

static attncl_status token_input(struct build *b, const struct embed_settings *s,
                                 attncl_layout layout, attncl_value *x_ret)
{
    const attncl_value tokens = attncl__input(b, "tokens");
    TRY(attncl__check_length("tokens", attncl__input_axis(b, 'T'), s->limit));
    *x_ret = attncl__embed(b, s, tokens, ATTNCL_NONE_VALUE, layout);
    return ATTNCL_OK;
}

static attncl_status vector_input(struct build *b, const struct block_settings *s,
                                  attncl_value *x_ret)
{
    *x_ret = attncl__input(b, "x");
    return attncl__check_length("x", attncl__input_axis(b, 'T'), attncl__block_limit(s));
}

// x and its mask.  Layers that mix along the first axis alone get a copy of x with that order.
static attncl_status take_layer_inputs(struct build *b, const struct layers_settings *s,
                                       struct block_call *call, attncl_value *x_ret)
{
    const struct block_settings *block = &s->encoder.block;
    call->layout = s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    if (s->embed.n_vocab > 0)
        TRY(token_input(b, &s->embed, call->layout, x_ret));
    else
        TRY(vector_input(b, block, x_ret));
    call->mask = attncl__input(b, "mask");
    if (s->batch_first && block->kind != BLOCK_TRANSFORMER) {
        const int64_t swapped[3] = {attncl__input_axis(b, 'T'), attncl__input_axis(b, 'B'),
                                    attncl__block_width(block)};
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

static attncl_status layer_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    struct block_call call = {0};
    attncl_value x;
    TRY(take_layer_inputs(b, s, &call, &x));
    layer_output(b, s, attncl__block(b, &s->encoder.block, &call, x));
    return ATTNCL_OK;
}

#define MASKS                                                                                      \
    PORT("mask", MASK, "T|1 T B|1", .optional = true, OFF("gmlp")),                                \
        PORT("mask", MASK, "T|1 T 1", .optional = true, ON("gmlp"))

const struct arch_class attncl__arch_transformer_layer = {
    .name = "transformer_layer",
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256}",
    .settings_bytes = sizeof(struct layers_settings),
    .keys = KEYS(KEYS_OF(attncl__block_keys, AT(layers_settings, encoder.block)),
                 {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)}),
    .inputs = PORTS(PORT("x", F32, "T B d_model", .batch_first = true), MASKS),
    .outputs = PORTS(PORT("output", F32, "T B d_model", .batch_first = true)),
    .build = layer_build,
};

static attncl_status check_encoder(void *settings)
{
    struct layers_settings *s = settings;
    if (s->embed.n_vocab > 0)
        attncl__embed_set_limit(&s->embed, attncl__block_limit(&s->encoder.block));
    return ATTNCL_OK;
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

static attncl_status encoder_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    struct block_call call = {0};
    attncl_value x;
    REQUIRE(!b->for_loss || s->classes.n > 0, ATTNCL_ERR_UNSUPPORTED,
            "the encoder has no classes to compare with targets: n_classes is 0");
    TRY(take_layer_inputs(b, s, &call, &x));
    if (s->encoder.block.kind == BLOCK_TRANSFORMER)
        call.valid_lens = attncl__input(b, "valid_lens");
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
    .keys = KEYS(KEYS_OF(attncl__encoder_keys, AT(layers_settings, encoder)),
                 {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)},
                 {"n_vocab", KEY_INT, AT(layers_settings, embed.n_vocab), .min = 1, OR(0)},
                 KEYS_OF(attncl__classes_keys, AT(layers_settings, classes)),
                 KEYS_OF(attncl__embed_keys, AT(layers_settings, embed), UNLESS("n_vocab", "0")),
                 CHECK(check_encoder)),
    .inputs = PORTS(PORT("x", F32, "T B d_model", .batch_first = true, WHEN("n_vocab", "0")),
                    PORT("tokens", INDEX, "T B", .batch_first = true, .below = "n_vocab",
                         UNLESS("n_vocab", "0")),
                    MASKS,
                    // Layers that mix by position take no lengths.
                    PORT("valid_lens", INT, "B", .optional = true, ON("transformer"))),
    .outputs =
        PORTS(PORT("output", F32, "T B d_model", .batch_first = true, WHEN("n_classes", "0")),
              PORT("output", F32, "B n_classes", WHEN("pool", "mean", "first")),
              PORT("output", F32, "T B n_classes", .batch_first = true, WHEN("pool", "none"))),
    .build = encoder_build,
    .target = TARGET_LABELS,
};
