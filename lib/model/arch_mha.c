// SPDX-License-Identifier: MIT
//
// mha: multi-head attention, sequence first.

#include "attncl/ops.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_mha.h"

static attncl_status configure(struct config *config, void *settings)
{
    return attncl__mha_configure(config, settings);
}

static void load(struct params *p, const void *settings)
{
    attncl_mha_params ignored = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(p, settings, &ignored);
}

static attncl_status build(struct build *b, const void *settings)
{
    static const int to_tsbh[] = {2, 3, 0, 1};
    const struct mha_settings *s = settings;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;
    TRY(attncl__input_sequence(b, "query", s->d_model, 0, &in.query));
    const int64_t *q = attncl__input_find(b, "query")->dim; // [T, B, C]
    const int64_t keys[3] = {AXIS('S'), q[1], s->d_model};
    TRY(attncl__input_real(b, "key", 3, keys, &in.key));
    const int64_t *k = attncl__input_find(b, "key")->dim; // [S, B, C]
    TRY(attncl__input_real(b, "value", 3, k, &in.value));
    TRY(attncl__input_pair_mask(b, q[0], k[0], q[1], &in.mask));

    attncl_mha_params params = ATTNCL_MHA_PARAMS_INIT;
    attncl__mha_params(&b->params, s, &params);
    const attncl_value y =
        attncl_multi_head_attention(b->graph, NULL, &params, s->heads, &in, &weights);
    attncl_graph_output(b->graph, "output", y);
    attncl_graph_output(b->graph, "attn", attncl_permute(b->graph, weights, to_tsbh));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_mha = {
    .name = "mha",
    .settings_bytes = sizeof(struct mha_settings),
    .configure = configure,
    .load = load,
    .build = build,
    .detached = "attn",
};
