// SPDX-License-Identifier: MIT
//
// feed_forward, transformer_layer, encoder.

#include "base/try.h"
#include "model/arch.h"
#include "model/block_encoder.h"

static attncl_status ffn_configure(struct config *config, void *settings)
{
    return attncl__ffn_configure(config, settings);
}

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
    .settings_bytes = sizeof(struct ffn_settings),
    .configure = ffn_configure,
    .load = ffn_load,
    .build = ffn_build,
};

// x [T, B, C] and its mask
static attncl_status block_inputs(struct build *b, const struct block_settings *s,
                                  attncl_value *x_ret, attncl_value *mask_ret)
{
    TRY(attncl__input_sequence(b, "x", attncl__block_width(s), attncl__block_limit(s), x_ret));
    const int64_t *dim = attncl__input_find(b, "x")->dim;
    return attncl__input_mask(b, dim[0], attncl__block_mask_batch(s, dim[1]), mask_ret);
}

static attncl_status layer_configure(struct config *config, void *settings)
{
    return attncl__block_configure(config, settings);
}

static void layer_load(struct params *p, const void *settings)
{
    attncl__block_load(p, settings);
}

static attncl_status layer_build(struct build *b, const void *settings)
{
    attncl_value x, mask;
    TRY(block_inputs(b, settings, &x, &mask));
    attncl_graph_output(b->graph, "output", attncl__block(b, settings, x, false, mask));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_transformer_layer = {
    .name = "transformer_layer",
    .settings_bytes = sizeof(struct block_settings),
    .configure = layer_configure,
    .load = layer_load,
    .build = layer_build,
};

static attncl_status encoder_configure(struct config *config, void *settings)
{
    return attncl__encoder_configure(config, settings);
}

static void encoder_load(struct params *p, const void *settings)
{
    attncl__encoder_load(p, settings);
}

static attncl_status encoder_build(struct build *b, const void *settings)
{
    const struct encoder_settings *s = settings;
    attncl_value x, mask;
    TRY(block_inputs(b, &s->block, &x, &mask));
    attncl_graph_output(b->graph, "output", attncl__encoder(b, s, x, false, mask));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_encoder = {
    .name = "encoder",
    .settings_bytes = sizeof(struct encoder_settings),
    .configure = encoder_configure,
    .load = encoder_load,
    .build = encoder_build,
};
