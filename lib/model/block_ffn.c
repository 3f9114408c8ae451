// SPDX-License-Identifier: MIT
//
// The keys and parameters of a feed-forward network.

#include "model/block_ffn.h"
#include "base/try.h"
#include "model/config.h"

attncl_status attncl__ffn_configure(struct config *config, struct ffn_settings *ret)
{
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    TRY(attncl__config_int(config, "d_ff", 1, &ret->d_ff));
    TRY(attncl__config_activation(config, "activation", "ReLU", &ret->activation));
    TRY(attncl__config_bool_or(config, "is_gated", false, &ret->gated));
    TRY(attncl__config_bool_or(config, "bias1", true, &ret->bias1));
    TRY(attncl__config_bool_or(config, "bias2", true, &ret->bias2));
    return attncl__config_bool_or(config, "bias_gate", true, &ret->bias_gate);
}

void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret)
{
    const int64_t c = s->d_model, f = s->d_ff;
    attncl__param_linear(p, "layer1", f, c, s->bias1, &ret->layer1_weight, &ret->layer1_bias);
    ret->gate_weight = ret->gate_bias = ATTNCL_NONE_VALUE;
    if (s->gated)
        attncl__param_linear(p, "linear_v", f, c, s->bias_gate, &ret->gate_weight, &ret->gate_bias);
    attncl__param_linear(p, "layer2", c, f, s->bias2, &ret->layer2_weight, &ret->layer2_bias);
}
