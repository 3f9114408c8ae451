// SPDX-License-Identifier: MIT
//
// The keys, parameters and description of an AFT layer.

#include <inttypes.h>

#include "base/try.h"
#include "model/block_aft.h"
#include "model/config.h"

static attncl_status configure_heads(struct config *config, struct aft_settings *ret)
{
    TRY(attncl__config_int(config, "heads", 1, &ret->heads));
    TRY(attncl__config_int(config, "window_size", 1, &ret->filter));
    REQUIRE(ret->d_model % ret->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model is %" PRId64 ", not a multiple of heads, %" PRId64, ret->d_model, ret->heads);
    REQUIRE(ret->filter % 2 == 1, ATTNCL_ERR_FORMAT,
            "window_size is %" PRId64 ", expected an odd number", ret->filter);
    return ATTNCL_OK;
}

attncl_status attncl__aft_configure(struct config *config, attncl_aft_kind kind,
                                    struct aft_settings *ret)
{
    *ret = (struct aft_settings){.kind = kind};
    TRY(attncl__config_int(config, "d_model", 1, &ret->d_model));
    if (kind == ATTNCL_AFT_CONV)
        TRY(configure_heads(config, ret));
    if (kind == ATTNCL_AFT_LOCAL || kind == ATTNCL_AFT_FULL)
        TRY(attncl__config_int(config, "seq_len", 1, &ret->seq_len));
    if (kind == ATTNCL_AFT_LOCAL)
        TRY(attncl__config_int(config, "local_window_size", 0, &ret->window));
    return attncl__config_bool_or(config, "bias", true, &ret->bias);
}

// [out, width] and, with a bias, [out]
void attncl__aft_params(struct params *p, const struct aft_settings *s, attncl_aft_params *ret)
{
    const int64_t width = s->d_model, n = s->seq_len;
    const int64_t keys = s->kind == ATTNCL_AFT_CONV ? s->heads : width;
    const struct param_init zero = INIT_CONSTANT(0);
    attncl__param_linear(p, "query", width, width, s->bias, &ret->query_weight, &ret->query_bias);
    attncl__param_linear(p, "key", keys, width, s->bias, &ret->key_weight, &ret->key_bias);
    attncl__param_linear(p, "value", width, width, s->bias, &ret->value_weight, &ret->value_bias);
    if (s->kind == ATTNCL_AFT_CONV)
        ret->pos_bias = PARAM(p, "w", zero, s->heads, s->filter);
    else
        ret->pos_bias = PARAM_IF(s->kind != ATTNCL_AFT_SIMPLE, p, "pos_bias", zero, n, n);
    if (s->kind == ATTNCL_AFT_LOCAL)
        attncl__param_check_window(p, "local_mask", n, s->window);
    attncl__param_linear(p, "output", width, width, true, &ret->output_weight, &ret->output_bias);
}

bool attncl__aft_keeps_rows(const struct aft_settings *s)
{
    return s->kind != ATTNCL_AFT_SIMPLE && !(s->kind == ATTNCL_AFT_LOCAL && s->window == 0);
}

attncl_aft_desc attncl__aft_desc(const struct aft_settings *s, bool causal)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    desc.kind = s->kind;
    desc.window = s->window;
    desc.causal = causal;
    return desc;
}
