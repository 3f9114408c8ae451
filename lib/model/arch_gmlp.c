// SPDX-License-Identifier: MIT
//
// spatial_gating_unit and gmlp_block.

#include "model/arch.h"
#include "model/block_layers.h"

static attncl_status sgu_build(struct build *b, const void *settings)
{
    const struct sgu_settings *s = settings;
    attncl_sgu_params params = ATTNCL_SGU_PARAMS_INIT;
    const attncl_value z = attncl__input(b, "z");
    TRY(attncl__check_length("z", attncl__input_axis(b, 'T'), s->seq_len));
    const attncl_value mask = attncl__input(b, "mask");
    attncl__sgu_params(&b->params, s, &params);
    attncl_graph_output(b->graph, "output",
                        attncl_spatial_gating_unit(b->graph, &params, z, 0, mask));
    return ATTNCL_OK;
}

#define SHARED_MASK PORT("mask", MASK, "T|1 T 1", .optional = true)

const struct arch_class attncl__arch_spatial_gating_unit = {
    .name = "spatial_gating_unit",
    .example = "{\"d_z\": 64, \"seq_len\": 40}",
    .settings_bytes = sizeof(struct sgu_settings),
    .keys = attncl__sgu_keys,
    .inputs = PORTS(PORT("z", F32, "T B d_z"), SHARED_MASK),
    .outputs = PORTS(PORT("output", F32, "T B d_z/2")),
    .build = sgu_build,
};

static attncl_status block_build(struct build *b, const void *settings)
{
    const struct gmlp_settings *s = settings;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
    const attncl_value x = attncl__input(b, "x");
    TRY(attncl__check_length("x", attncl__input_axis(b, 'T'), s->seq_len));
    const attncl_value mask = attncl__input(b, "mask");
    attncl__gmlp_params(&b->params, s, &gate, &params);
    attncl_graph_output(b->graph, "output", attncl_gmlp_block(b->graph, &params, x, 0, mask));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_gmlp_block = {
    .name = "gmlp_block",
    .example = "{\"d_model\": 64, \"d_ffn\": 256, \"seq_len\": 40}",
    .settings_bytes = sizeof(struct gmlp_settings),
    .keys = attncl__gmlp_keys,
    .inputs = PORTS(PORT("x", F32, "T B d_model"), SHARED_MASK),
    .outputs = PORTS(PORT("output", F32, "T B d_model")),
    .build = block_build,
};
