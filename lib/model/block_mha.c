// SPDX-License-Identifier: MIT
//
// The keys and parameters of multi-head attention.

#include <inttypes.h>

#include "model/block_layers.h"

static attncl_status check(void *settings)
{
    const struct mha_settings *s = settings;
    REQUIRE(s->d_model % s->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model = %" PRId64 " cannot be cut into heads = %" PRId64, s->d_model, s->heads);
    return ATTNCL_OK;
}

const struct key attncl__mha_keys[] = {
    {"d_model", KEY_INT, AT(mha_settings, d_model), .min = 1},
    {"heads", KEY_INT, AT(mha_settings, heads), .min = 1},
    {"bias", KEY_BOOL, AT(mha_settings, bias), OR(true)},
    CHECK(check),
    {0},
};

void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret)
{
    const int64_t c = s->d_model;
    attncl__param_linear(p, "query.linear", c, c, s->bias, &ret->query_weight, &ret->query_bias);
    attncl__param_linear(p, "key.linear", c, c, s->bias, &ret->key_weight, &ret->key_bias);
    attncl__param_linear(p, "value.linear", c, c, true, &ret->value_weight, &ret->value_bias);
    attncl__param_linear(p, "output", c, c, true, &ret->output_weight, &ret->output_bias);
}
