// SPDX-License-Identifier: MIT
//
// aft_local, aft_full, aft_simple, aft_conv: one AFT layer.

#include "model/arch.h"
#include "model/block_layers.h"

static attncl_status build(struct build *b, const void *settings)
{
    const struct aft_settings *s = settings;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    in.query = attncl__input(b, "query");
    TRY(attncl__check_length("query", attncl__input_axis(b, 'T'), s->seq_len));
    in.key = attncl__input(b, "key");
    in.value = attncl__input(b, "value");
    in.mask = attncl__input(b, "mask");

    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    const attncl_aft_desc desc = attncl__aft_desc(s, false);
    attncl__aft_params(&b->params, s, &params);
    attncl_graph_output(b->graph, "output", attncl_aft(b->graph, &desc, &params, &in));
    return ATTNCL_OK;
}

static const struct port inputs[] = {
    PORT("query", F32, "T B d_model"),
    PORT("key", F32, "T B d_model"),
    PORT("value", F32, "T B d_model"),
    PORT("mask", MASK, "T|1 T B|1", .optional = true),
    {0},
};
static const struct port outputs[] = {PORT("output", F32, "T B d_model"), {0}};

#define AFT                                                                                        \
    .settings_bytes = sizeof(struct aft_settings), .inputs = inputs, .outputs = outputs,           \
    .build = build

const struct arch_class attncl__arch_aft_local = {
    .name = "aft_local",
    .example = "{\"d_model\": 64, \"seq_len\": 40, \"local_window_size\": 8}",
    .keys = attncl__aft_local_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_full = {
    .name = "aft_full",
    .example = "{\"d_model\": 64, \"seq_len\": 40}",
    .keys = attncl__aft_full_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_simple = {
    .name = "aft_simple",
    .example = "{\"d_model\": 64}",
    .keys = attncl__aft_simple_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_conv = {
    .name = "aft_conv",
    .example = "{\"d_model\": 64, \"heads\": 4, \"window_size\": 7}",
    .keys = attncl__aft_conv_keys,
    AFT,
};
