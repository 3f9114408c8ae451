// SPDX-License-Identifier: MIT
// The settings and parameters of multi-head attention.
#ifndef ATTNCL_MODEL_BLOCK_MHA_H
#define ATTNCL_MODEL_BLOCK_MHA_H

#include "attncl/attention.h"
#include "model/config.h"
#include "model/params.h"

struct mha_settings {
    int64_t d_model, heads;
    bool bias; // of queries and keys; values always have one
};
extern const struct key attncl__mha_keys[];
void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret);

#endif
