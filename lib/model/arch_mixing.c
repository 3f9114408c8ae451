// SPDX-License-Identifier: MIT
//
// aft_local, aft_full, aft_simple, aft_conv, spatial_gating_unit, gmlp_block, mha: layers that mix
// positions.

#include "model/arch.h"
#include "model/block_layers.h"

// -- an AFT layer

static attncl_value aft_build(struct build *b, const void *settings)
{
    const struct aft_settings *s = settings;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    in.query = attncl__input(b, "query");
    attncl__check_length(b, "query", 'T', s->seq_len);
    in.key = attncl__input(b, "key");
    in.value = attncl__input(b, "value");
    in.mask = attncl__input(b, "mask");

    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    const attncl_aft_desc desc = attncl__aft_desc(s, false);
    attncl__aft_params(&b->params, s, &params);
    return attncl_aft(b->graph, &desc, &params, &in);
}

static const struct port aft_inputs[] = {
    PORT("query", F32, "T B d_model"),
    PORT("key", F32, "T B d_model"),
    PORT("value", F32, "T B d_model"),
    PORT("mask", MASK, "T|1 T B|1", .optional = true),
    {0},
};
static const struct port aft_outputs[] = {PORT("output", F32, "T B d_model"), {0}};

#define AFT                                                                                        \
    .settings_bytes = sizeof(struct aft_settings), .inputs = aft_inputs, .outputs = aft_outputs,   \
    .build = aft_build

const struct arch_class attncl__arch_aft_local = {
    .example = "{\"d_model\": 64, \"seq_len\": 40, \"local_window_size\": 8}",
    .keys = attncl__aft_local_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_full = {
    .example = "{\"d_model\": 64, \"seq_len\": 40}",
    .keys = attncl__aft_full_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_simple = {
    .example = "{\"d_model\": 64}",
    .keys = attncl__aft_simple_keys,
    AFT,
};

const struct arch_class attncl__arch_aft_conv = {
    .example = "{\"d_model\": 64, \"heads\": 4, \"window_size\": 7}",
    .keys = attncl__aft_conv_keys,
    AFT,
};

// -- a spatial gating unit and a gMLP block

static attncl_value sgu_build(struct build *b, const void *settings)
{
    const struct sgu_settings *s = settings;
    attncl_sgu_params params = ATTNCL_SGU_PARAMS_INIT;
    const attncl_value z = attncl__input(b, "z");
    attncl__check_length(b, "z", 'T', s->seq_len);
    const attncl_value mask = attncl__input(b, "mask");
    attncl__sgu_params(&b->params, s, &params);
    return attncl_spatial_gating_unit(b->graph, &params, z, 0, mask);
}

#define SHARED_MASK PORT("mask", MASK, "T|1 T 1", .optional = true)

const struct arch_class attncl__arch_spatial_gating_unit = {
    .example = "{\"d_z\": 64, \"seq_len\": 40}",
    .settings_bytes = sizeof(struct sgu_settings),
    .keys = attncl__sgu_keys,
    .inputs = PORTS(PORT("z", F32, "T B d_z"), SHARED_MASK),
    .outputs = PORTS(PORT("output", F32, "T B d_z/2")),
    .build = sgu_build,
};

static attncl_value block_build(struct build *b, const void *settings)
{
    const struct gmlp_settings *s = settings;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
    const attncl_value x = attncl__input(b, "x");
    attncl__check_length(b, "x", 'T', s->seq_len);
    const attncl_value mask = attncl__input(b, "mask");
    attncl__gmlp_params(&b->params, s, &gate, &params);
    return attncl_gmlp_block(b->graph, &params, x, 0, mask);
}

const struct arch_class attncl__arch_gmlp_block = {
    .example = "{\"d_model\": 64, \"d_ffn\": 256, \"seq_len\": 40}",
    .settings_bytes = sizeof(struct gmlp_settings),
    .keys = attncl__gmlp_keys,
    .inputs = PORTS(PORT("x", F32, "T B d_model"), SHARED_MASK),
    .outputs = PORTS(PORT("output", F32, "T B d_model")),
    .build = block_build,
};

// -- multi-head attention

struct arch_mha_settings {
    struct mha_settings mha;
    bool batch_first;
};

static attncl_value mha_build(struct build *b, const void *settings)
{
    static const int to_tsbh[] = {2, 3, 0, 1};
    const struct arch_mha_settings *s = settings;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;

    in.query = attncl__input(b, "query");
    in.key = attncl__input(b, "key");
    in.value = attncl__input(b, "value");
    in.mask = attncl__input(b, "mask");
    in.bias = attncl__input(b, "bias");

    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(&b->params, &s->mha, &params);
    const int64_t n_queries = attncl__input_axis(b, 'T'), n_keys = attncl__input_axis(b, 'S');
    attncl_attention_desc desc =
        attncl__mha_desc(b, &s->mha, n_queries > n_keys ? n_queries : n_keys);
    desc.layout = s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    const attncl_value y =
        attncl_multi_head_attention(b->graph, &desc, &params, s->mha.heads, &in, &weights);
    attncl_graph_output(b->graph, "output", y);
    attncl_graph_output(b->graph, "attn", attncl_permute(b->graph, weights, to_tsbh));
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_mha = {
    .example = "{\"d_model\": 64, \"heads\": 4}",
    .settings_bytes = sizeof(struct arch_mha_settings),
    .keys = KEYS(KEYS_OF(attncl__mha_keys, AT(arch_mha_settings, mha)),
                 {"batch_first", KEY_BOOL, AT(arch_mha_settings, batch_first), OR(false)}),
    .inputs = PORTS(PORT("query", F32, "T B d_model", .batch_first = true),
                    PORT("key", F32, "S B d_model", .batch_first = true),
                    PORT("value", F32, "S B d_model", .batch_first = true),
                    PORT("mask", MASK, "T|1 S B|1", .optional = true),
                    PORT("bias", F32, "B|1 heads|1 T|1 S", .optional = true)),
    .outputs = PORTS(PORT("output", F32, "T B d_model", .batch_first = true),
                     PORT("attn", F32, "T S B heads")),
    .build = mha_build,
    .detached = "attn",
};
