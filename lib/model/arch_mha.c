// SPDX-License-Identifier: MIT
//
// mha: multi-head attention.

#include "model/arch.h"
#include "model/block_layers.h"

struct arch_mha_settings {
    struct mha_settings mha;
    bool batch_first;
};

static attncl_status build(struct build *b, const void *settings)
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
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_mha = {
    .name = "mha",
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
    .build = build,
    .detached = "attn",
};
