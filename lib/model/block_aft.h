// SPDX-License-Identifier: MIT
// The settings and parameters of an AFT layer.
#ifndef ATTNCL_MODEL_BLOCK_AFT_H
#define ATTNCL_MODEL_BLOCK_AFT_H

#include "attncl/aft.h"
#include "model/config.h"
#include "model/params.h"

struct aft_settings {
    attncl_aft_kind kind;
    int64_t d_model;
    int64_t seq_len; // 0: no limit
    int64_t window;
    int64_t heads, filter; // AFT-conv: biases [heads, filter]
    bool bias;
};
extern const struct key attncl__aft_local_keys[], attncl__aft_full_keys[],
    attncl__aft_simple_keys[], attncl__aft_conv_keys[];
void attncl__aft_params(struct params *p, const struct aft_settings *s, attncl_aft_params *ret);
attncl_aft_desc attncl__aft_desc(const struct aft_settings *s, bool causal);
// Whether its step keeps keys and values; else sums alone.
bool attncl__aft_keeps_rows(const struct aft_settings *s);

#endif
