// SPDX-License-Identifier: MIT
//
// The keys and parameters of a spatial gating unit and of a gMLP block.

#include <inttypes.h>

#include "base/try.h"
#include "model/block_gmlp.h"
#include "model/block_norm.h"
#include "model/config.h"

// The gating unit halves this width.
static attncl_status even_int(struct config *config, const char *key, int64_t *ret)
{
    TRY(attncl__config_int(config, key, 2, ret));
    REQUIRE(*ret % 2 == 0, ATTNCL_ERR_FORMAT, "%s is %" PRId64 ", expected an even number", key,
            *ret);
    return ATTNCL_OK;
}

void attncl__sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret)
{
    const struct norm_params norm = attncl__norm_params(p, "norm", s->d_z / 2);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
    ret->weight = PARAM(p, "weight", INIT_UNIFORM(-0.01, 0.01), s->seq_len, s->seq_len);
    ret->bias = PARAM(p, "bias", INIT_CONSTANT(1), s->seq_len);
}

attncl_status attncl__sgu_configure(struct config *config, struct sgu_settings *s)
{
    TRY(even_int(config, "d_z", &s->d_z));
    TRY(attncl__config_int(config, "seq_len", 1, &s->seq_len));
    return attncl__norm_eps_configure(config, &s->norm_eps);
}

attncl_status attncl__gmlp_configure(struct config *config, struct gmlp_settings *ret)
{
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    TRY(even_int(config, "d_ffn", &ret->d_ffn));
    TRY(attncl__config_int(config, "seq_len", 1, &ret->seq_len));
    return attncl__norm_eps_configure(config, &ret->norm_eps);
}

void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret)
{
    const struct sgu_settings sgu = {s->d_ffn, s->seq_len, s->norm_eps};

    const struct norm_params norm = attncl__norm_params(p, "norm", s->d_model);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
    attncl__param_linear(p, "proj1", s->d_ffn, s->d_model, true, &ret->proj1_weight,
                         &ret->proj1_bias);
    attncl__params_enter(p, "sgu");
    attncl__sgu_params(p, &sgu, gate);
    ret->sgu = gate;
    attncl__params_leave(p);
    attncl__param_linear(p, "proj2", s->d_model, s->d_ffn / 2, true, &ret->proj2_weight,
                         &ret->proj2_bias);
}
