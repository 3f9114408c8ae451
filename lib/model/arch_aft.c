// SPDX-License-Identifier: MIT
//
// aft_local, aft_full, aft_simple, aft_conv: one AFT layer.

#include "base/try.h"
#include "model/arch.h"
#include "model/block_aft.h"

static void load(struct params *p, const void *settings)
{
    attncl_aft_params ignored = ATTNCL_AFT_PARAMS_INIT;
    attncl__aft_params(p, settings, &ignored);
}

static attncl_status build(struct build *b, const void *settings)
{
    const struct aft_settings *s = settings;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    TRY(attncl__input_sequence(b, ATTNCL_LAYOUT_TIME_FIRST, "query", s->d_model, s->seq_len,
                               &in.query));

    const int64_t *dim = attncl__input_find(b, "query")->dim; // key and value are as long
    TRY(attncl__input_real(b, "key", 3, dim, &in.key));
    TRY(attncl__input_real(b, "value", 3, dim, &in.value));
    TRY(attncl__input_mask(b, dim[0], dim[1], &in.mask));

    attncl_aft_params params = ATTNCL_AFT_PARAMS_INIT;
    const attncl_aft_desc desc = attncl__aft_desc(s, false);
    attncl__aft_params(&b->params, s, &params);
    attncl_graph_output(b->graph, "output", attncl_aft(b->graph, &desc, &params, &in));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_aft_local = {
    .name = "aft_local",
    .example = "{\"d_model\": 64, \"seq_len\": 40, \"local_window_size\": 8}",
    .settings_bytes = sizeof(struct aft_settings),
    .keys = attncl__aft_local_keys,
    .load = load,
    .build = build,
};

const struct arch_class attncl__arch_aft_full = {
    .name = "aft_full",
    .example = "{\"d_model\": 64, \"seq_len\": 40}",
    .settings_bytes = sizeof(struct aft_settings),
    .keys = attncl__aft_full_keys,
    .load = load,
    .build = build,
};

const struct arch_class attncl__arch_aft_simple = {
    .name = "aft_simple",
    .example = "{\"d_model\": 64}",
    .settings_bytes = sizeof(struct aft_settings),
    .keys = attncl__aft_simple_keys,
    .load = load,
    .build = build,
};

const struct arch_class attncl__arch_aft_conv = {
    .name = "aft_conv",
    .example = "{\"d_model\": 64, \"heads\": 4, \"window_size\": 7}",
    .settings_bytes = sizeof(struct aft_settings),
    .keys = attncl__aft_conv_keys,
    .load = load,
    .build = build,
};
