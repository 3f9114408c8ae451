// SPDX-License-Identifier: MIT
//
// The keys and parameters of a feed-forward network.

#include "model/block_layers.h"

const struct choice attncl__activation_choices[] = {
    {"identity", ATTNCL_IDENTITY},   {"gelu", ATTNCL_GELU},
    {"relu", ATTNCL_RELU},           {"sigmoid", ATTNCL_SIGMOID},
    {"tanh", ATTNCL_TANH},           {"silu", ATTNCL_SILU},
    {"gelu_tanh", ATTNCL_GELU_TANH}, {0},
};

const struct key attncl__ffn_keys[] = {
    {"d_model", KEY_INT, AT(ffn_settings, d_model), .min = 1},
    {"d_ff", KEY_INT, AT(ffn_settings, d_ff), .min = 1},
    {"activation", KEY_WORD, AT(ffn_settings, activation), .choices = attncl__activation_choices,
     .any_case = true, OR_WORD("ReLU")},
    {"is_gated", KEY_BOOL, AT(ffn_settings, gated), OR(false)},
    {"bias1", KEY_BOOL, AT(ffn_settings, bias1), OR(true)},
    {"bias2", KEY_BOOL, AT(ffn_settings, bias2), OR(true)},
    {"bias_gate", KEY_BOOL, AT(ffn_settings, bias_gate), OR(true)},
    {0},
};

void attncl__ffn_params(struct params *p, const struct ffn_settings *s, attncl_ffn_params *ret)
{
    const int64_t c = s->d_model, f = s->d_ff;
    attncl__param_linear(p, "layer1", f, c, s->bias1, &ret->layer1_weight, &ret->layer1_bias);
    ret->gate_weight = ret->gate_bias = ATTNCL_NONE_VALUE;
    if (s->gated)
        attncl__param_linear(p, "linear_v", f, c, s->bias_gate, &ret->gate_weight, &ret->gate_bias);
    attncl__param_linear(p, "layer2", c, f, s->bias2, &ret->layer2_weight, &ret->layer2_bias);
}
