// SPDX-License-Identifier: MIT
//
// The keys, parameters and description of an AFT layer.

#include <inttypes.h>

#include "model/block_layers.h"

#define KIND(value) SETTING(KEY_WORD, AT(aft_settings, kind), .otherwise = (value))
#define D_MODEL     "d_model", KEY_INT, AT(aft_settings, d_model), .min = 1
#define SEQ_LEN     "seq_len", KEY_INT, AT(aft_settings, seq_len), .min = 1
#define BIAS        "bias", KEY_BOOL, AT(aft_settings, bias), OR(true)

const struct key attncl__aft_local_keys[] = {
    KIND(ATTNCL_AFT_LOCAL),
    {D_MODEL},
    {SEQ_LEN},
    {"local_window_size", KEY_INT, AT(aft_settings, window), .min = 0},
    {BIAS},
    {0},
};

const struct key attncl__aft_full_keys[] = {
    KIND(ATTNCL_AFT_FULL), {D_MODEL}, {SEQ_LEN}, {BIAS}, {0}};

const struct key attncl__aft_simple_keys[] = {KIND(ATTNCL_AFT_SIMPLE), {D_MODEL}, {BIAS}, {0}};

static attncl_status check_conv(void *settings)
{
    const struct aft_settings *s = settings;
    REQUIRE(s->d_model % s->heads == 0, ATTNCL_ERR_FORMAT,
            "d_model is %" PRId64 ", not a multiple of heads, %" PRId64, s->d_model, s->heads);
    return attncl__check_parity("window_size", s->filter, false);
}

const struct key attncl__aft_conv_keys[] = {
    KIND(ATTNCL_AFT_CONV),
    {D_MODEL},
    {"heads", KEY_INT, AT(aft_settings, heads), .min = 1},
    {"window_size", KEY_INT, AT(aft_settings, filter), .min = 1},
    {BIAS},
    CHECK(check_conv),
    {0},
};

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
