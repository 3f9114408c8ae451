// SPDX-License-Identifier: MIT
#ifndef ATTNCL_AFT_H
#define ATTNCL_AFT_H
#include "attncl/attention.h"
ATTNCL_BEGIN
typedef enum attncl_aft_kind {
    ATTNCL_AFT_LOCAL = 0,
    ATTNCL_AFT_FULL = 1,
    ATTNCL_AFT_SIMPLE = 2,
    ATTNCL_AFT_CONV = 3,
} attncl_aft_kind;
typedef struct attncl_aft_desc {
    size_t struct_size;
    attncl_aft_kind kind;
    int64_t window;
    int causal;
} attncl_aft_desc;
#define ATTNCL_AFT_DESC_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_aft_desc), ATTNCL_AFT_LOCAL, 0, 0                                            \
    }
ATTNCL_API attncl_value attncl_aft_mix(attncl_graph *g, const attncl_aft_desc *desc, attncl_value q,
                                       attncl_value k, attncl_value v, attncl_value pos_bias,
                                       attncl_value mask);
typedef struct attncl_aft_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;
    attncl_value key_weight, key_bias;
    attncl_value value_weight, value_bias;
    attncl_value pos_bias;
    attncl_value output_weight, output_bias;
} attncl_aft_params;
#define ATTNCL_AFT_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_aft_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                                   \
    }
ATTNCL_API attncl_value attncl_aft(attncl_graph *g, const attncl_aft_desc *desc,
                                   const attncl_aft_params *params,
                                   const attncl_attention_inputs *inputs);
ATTNCL_API attncl_value attncl_aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                                        const attncl_aft_params *params, attncl_value x,
                                        attncl_value position, attncl_value residual);
ATTNCL_END
#endif
