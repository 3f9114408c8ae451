// SPDX-License-Identifier: MIT
//
// mha: multi-head attention.

#include "attncl/ops.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_mha.h"
#include "model/config.h"

struct arch_mha_settings {
    struct mha_settings mha;
    bool batch_first;
};

static const struct key table[] = {
    KEYS_OF(attncl__mha_keys, AT(arch_mha_settings, mha)),
    {"batch_first", KEY_BOOL, AT(arch_mha_settings, batch_first), OR(false)},
    {0},
};

static void load(struct params *p, const void *settings)
{
    attncl_mha_params ignored = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(p, &((const struct arch_mha_settings *)settings)->mha, &ignored);
}

static attncl_status build(struct build *b, const void *settings)
{
    static const int to_tsbh[] = {2, 3, 0, 1};
    const struct arch_mha_settings *s = settings;
    const int64_t width = s->mha.d_model;
    const int t = s->batch_first ? 1 : 0; // the axis of positions
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;
    desc.layout = s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;

    TRY(attncl__input_sequence(b, desc.layout, "query", width, 0, &in.query));
    const int64_t *q = attncl__input_find(b, "query")->dim;
    int64_t keys[3] = {AXIS('S'), AXIS('S'), width};
    keys[1 - t] = q[1 - t];
    TRY(attncl__input_real(b, "key", 3, keys, &in.key));
    const int64_t *k = attncl__input_find(b, "key")->dim;
    TRY(attncl__input_real(b, "value", 3, k, &in.value));
    TRY(attncl__input_pair_mask(b, q[t], k[t], q[1 - t], &in.mask));

    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(&b->params, &s->mha, &params);
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
    .keys = table,
    .load = load,
    .build = build,
    .detached = "attn",
};
