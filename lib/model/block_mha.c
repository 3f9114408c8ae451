// SPDX-License-Identifier: MIT
//
// The keys and parameters of multi-head attention.

#include <inttypes.h>

#include "base/try.h"
#include "model/block_mha.h"
#include "model/config.h"

attncl_status attncl__mha_configure(struct config *config, struct mha_settings *ret)
{
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    TRY(attncl__config_int(config, "heads", 1, &ret->heads));
    REQUIRE(ret->d_model % ret->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model = %" PRId64 " cannot be cut into heads = %" PRId64, ret->d_model, ret->heads);
    return attncl__config_bool_or(config, "bias", true, &ret->bias);
}

void attncl__mha_params(struct params *p, const struct mha_settings *s, attncl_mha_params *ret)
{
    const int64_t c = s->d_model;
    attncl__param_linear(p, "query.linear", c, c, s->bias, &ret->query_weight, &ret->query_bias);
    attncl__param_linear(p, "key.linear", c, c, s->bias, &ret->key_weight, &ret->key_bias);
    attncl__param_linear(p, "value.linear", c, c, true, &ret->value_weight, &ret->value_bias);
    attncl__param_linear(p, "output", c, c, true, &ret->output_weight, &ret->output_bias);
}
