// SPDX-License-Identifier: MIT
#ifndef ATTNCL_TRANSFORMER_H
#define ATTNCL_TRANSFORMER_H
#include "attncl/ops.h"
ATTNCL_BEGIN
typedef struct attncl_ffn_params {
    size_t struct_size;
    attncl_value layer1_weight, layer1_bias;
    attncl_value gate_weight, gate_bias;
    attncl_value layer2_weight, layer2_bias;
} attncl_ffn_params;
#define ATTNCL_FFN_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_ffn_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                \
    }
ATTNCL_API attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                            attncl_activation activation, attncl_value x,
                                            attncl_value residual);
ATTNCL_END
#endif
