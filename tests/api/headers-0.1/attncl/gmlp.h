// SPDX-License-Identifier: MIT
#ifndef ATTNCL_GMLP_H
#define ATTNCL_GMLP_H
#include "attncl/graph.h"
ATTNCL_BEGIN
typedef struct attncl_sgu_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias;
    attncl_value weight;
    attncl_value bias;
} attncl_sgu_params;
#define ATTNCL_SGU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_sgu_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_spatial_gating_unit(attncl_graph *g, const attncl_sgu_params *params,
                                                   attncl_value z, int causal, attncl_value mask);
typedef struct attncl_gmlp_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias;
    attncl_value proj1_weight, proj1_bias;
    const attncl_sgu_params *sgu;
    attncl_value proj2_weight, proj2_bias;
} attncl_gmlp_params;
#define ATTNCL_GMLP_PARAMS_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_gmlp_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT, NULL, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                          \
    }
ATTNCL_API attncl_value attncl_gmlp_block(attncl_graph *g, const attncl_gmlp_params *params,
                                          attncl_value x, int causal, attncl_value mask);
ATTNCL_API attncl_value attncl_gmlp_step(attncl_graph *g, const attncl_gmlp_params *params,
                                         attncl_value x, attncl_value position);
ATTNCL_END
#endif
