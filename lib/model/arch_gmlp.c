// SPDX-License-Identifier: MIT
//
// spatial_gating_unit and gmlp_block.

#include <inttypes.h>

#include "base/try.h"
#include "model/arch.h"
#include "model/blocks.h"
#include "model/config.h"

struct sgu_settings {
    int64_t d_z, seq_len;
};

// The gating unit halves this width.
static attncl_status even_int(const struct json *config, const char *key, int64_t *ret)
{
    TRY(attncl__config_int(config, key, 2, ret));
    REQUIRE(*ret % 2 == 0, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", expected an even number", key,
            *ret);
    return ATTNCL_OK;
}

static void sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret)
{
    attncl__params_enter(p, "norm");
    ret->norm_weight = PARAM(p, "weight", s->d_z / 2);
    ret->norm_bias = PARAM(p, "bias", s->d_z / 2);
    attncl__params_leave(p);
    ret->weight = PARAM(p, "weight", s->seq_len, s->seq_len);
    ret->bias = PARAM(p, "bias", s->seq_len);
}

static attncl_status sgu_configure(const struct json *config, void *settings)
{
    struct sgu_settings *s = settings;
    TRY(even_int(config, "d_z", &s->d_z));
    return attncl__config_int(config, "seq_len", 1, &s->seq_len);
}

static void sgu_load(struct params *p, const void *settings)
{
    attncl_sgu_params ignored = ATTNCL_SGU_PARAMS_INIT;
    sgu_params(p, settings, &ignored);
}

static attncl_status sgu_build(struct build *b, const void *settings)
{
    const struct sgu_settings *s = settings;
    attncl_sgu_params params = ATTNCL_SGU_PARAMS_INIT;
    attncl_value z, mask;
    TRY(attncl__input_sequence(b, "z", s->d_z, s->seq_len, &z));
    TRY(attncl__input_mask(b, attncl__input_find(b, "z")->dim[0], 1, &mask));
    sgu_params(&b->params, s, &params);
    attncl_graph_output(b->graph, "output",
                        attncl_spatial_gating_unit(b->graph, &params, z, 0, mask));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_spatial_gating_unit = {
    .name = "spatial_gating_unit",
    .settings_bytes = sizeof(struct sgu_settings),
    .configure = sgu_configure,
    .load = sgu_load,
    .build = sgu_build,
};

attncl_status attncl__gmlp_configure(const struct json *config, struct gmlp_settings *ret)
{
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    TRY(even_int(config, "d_ffn", &ret->d_ffn));
    return attncl__config_int(config, "seq_len", 1, &ret->seq_len);
}

void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret)
{
    const struct sgu_settings sgu = {s->d_ffn, s->seq_len};

    attncl__params_enter(p, "norm");
    ret->norm_weight = PARAM(p, "weight", s->d_model);
    ret->norm_bias = PARAM(p, "bias", s->d_model);
    attncl__params_leave(p);
    attncl__param_linear(p, "proj1", s->d_ffn, s->d_model, true, &ret->proj1_weight,
                         &ret->proj1_bias);
    attncl__params_enter(p, "sgu");
    sgu_params(p, &sgu, gate);
    ret->sgu = gate;
    attncl__params_leave(p);
    attncl__param_linear(p, "proj2", s->d_model, s->d_ffn / 2, true, &ret->proj2_weight,
                         &ret->proj2_bias);
}

static attncl_status block_configure(const struct json *config, void *settings)
{
    return attncl__gmlp_configure(config, settings);
}

static void block_load(struct params *p, const void *settings)
{
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    attncl_gmlp_params ignored = ATTNCL_GMLP_PARAMS_INIT;
    attncl__gmlp_params(p, settings, &gate, &ignored);
}

static attncl_status block_build(struct build *b, const void *settings)
{
    const struct gmlp_settings *s = settings;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    attncl_gmlp_params params = ATTNCL_GMLP_PARAMS_INIT;
    attncl_value x, mask;
    TRY(attncl__input_sequence(b, "x", s->d_model, s->seq_len, &x));
    TRY(attncl__input_mask(b, attncl__input_find(b, "x")->dim[0], 1, &mask));
    attncl__gmlp_params(&b->params, s, &gate, &params);
    attncl_graph_output(b->graph, "output", attncl_gmlp_block(b->graph, &params, x, 0, mask));
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_gmlp_block = {
    .name = "gmlp_block",
    .settings_bytes = sizeof(struct gmlp_settings),
    .configure = block_configure,
    .load = block_load,
    .build = block_build,
};
