// SPDX-License-Identifier: MIT
//
// The keys and parameters of a spatial gating unit and of a gMLP block.

#include "model/block_layers.h"

void attncl__sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret)
{
    const struct norm_params norm = attncl__norm_params(p, "norm", s->d_z / 2);
    ret->norm_weight = norm.weight;
    ret->norm_bias = norm.bias;
    ret->norm_eps = (float)s->norm_eps;
    ret->weight = PARAM(p, "weight", INIT_UNIFORM(-0.01, 0.01), s->seq_len, s->seq_len);
    ret->bias = PARAM(p, "bias", INIT_CONSTANT(1), s->seq_len);
}

// The gating unit halves this width.
static attncl_status check_sgu(void *settings)
{
    return attncl__check_parity("d_z", ((const struct sgu_settings *)settings)->d_z, true);
}

const struct key attncl__sgu_keys[] = {
    {"d_z", KEY_INT, AT(sgu_settings, d_z), .min = 2},
    {"seq_len", KEY_INT, AT(sgu_settings, seq_len), .min = 1},
    NORM_EPS_KEY(AT(sgu_settings, norm_eps)),
    CHECK(check_sgu),
    {0},
};

static attncl_status check_gmlp(void *settings)
{
    return attncl__check_parity("d_ffn", ((const struct gmlp_settings *)settings)->d_ffn, true);
}

const struct key attncl__gmlp_keys[] = {
    {"d_model", KEY_INT, AT(gmlp_settings, d_model), .min = 1},
    {"d_ffn", KEY_INT, AT(gmlp_settings, d_ffn), .min = 2},
    {"seq_len", KEY_INT, AT(gmlp_settings, seq_len), .min = 1},
    NORM_EPS_KEY(AT(gmlp_settings, norm_eps)),
    CHECK(check_gmlp),
    {0},
};

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
