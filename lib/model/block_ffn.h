// SPDX-License-Identifier: MIT
// The settings and parameters of a feed-forward network.
#ifndef ATTNCL_MODEL_BLOCK_FFN_H
#define ATTNCL_MODEL_BLOCK_FFN_H

#include "attncl/transformer.h"
#include "model/config.h"
#include "model/params.h"

// Activations by their PyTorch class ("ReLU") or function name ("relu"), for any_case.
extern const struct choice attncl__activation_choices[];

struct ffn_settings {
    int64_t d_model, d_ff;
    attncl_activation activation;
    bool gated, bias1, bias2, bias_gate;
};
extern const struct key attncl__ffn_keys[];
void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret);

#endif
