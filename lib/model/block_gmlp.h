// SPDX-License-Identifier: MIT
// The settings and parameters of a spatial gating unit and of a gMLP block.
#ifndef ATTNCL_MODEL_BLOCK_GMLP_H
#define ATTNCL_MODEL_BLOCK_GMLP_H

#include "attncl/gmlp.h"
#include "model/config.h"
#include "model/params.h"

struct sgu_settings {
    int64_t d_z, seq_len;
    double norm_eps;
};
extern const struct key attncl__sgu_keys[];
void attncl__sgu_params(struct params *p, const struct sgu_settings *s, attncl_sgu_params *ret);

struct gmlp_settings {
    int64_t d_model, d_ffn, seq_len;
    double norm_eps;
};
extern const struct key attncl__gmlp_keys[];
// ret->sgu becomes `gate`.
void attncl__gmlp_params(struct params *p, const struct gmlp_settings *s, attncl_sgu_params *gate,
                         attncl_gmlp_params *ret);

#endif
