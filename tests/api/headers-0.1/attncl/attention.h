// SPDX-License-Identifier: MIT
#ifndef ATTNCL_ATTENTION_H
#define ATTNCL_ATTENTION_H
#include "attncl/graph.h"
#include "attncl/kinds.h"
ATTNCL_BEGIN
typedef struct attncl_attention_desc {
    size_t struct_size;
    float scale;
    int causal;
    int64_t window;
    attncl_layout layout;
} attncl_attention_desc;
#define ATTNCL_ATTENTION_DESC_INIT                                                                 \
    {                                                                                              \
        sizeof(attncl_attention_desc), 0.0f, 0, 0, ATTNCL_LAYOUT_TIME_FIRST                        \
    }
typedef struct attncl_attention_inputs {
    size_t struct_size;
    attncl_value query, key, value;
    attncl_value mask;
    attncl_value valid_lens;
    attncl_value residual;
} attncl_attention_inputs;
#define ATTNCL_ATTENTION_INPUTS_INIT                                                               \
    {                                                                                              \
        sizeof(attncl_attention_inputs), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,  \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                \
    }
ATTNCL_API attncl_value attncl_attention(attncl_graph *g, const attncl_attention_desc *desc,
                                         const attncl_attention_inputs *inputs,
                                         attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_additive_attention(attncl_graph *g, attncl_value q, attncl_value k,
                                                  attncl_value v, attncl_value w,
                                                  attncl_value valid_lens,
                                                  attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_split_heads(attncl_graph *g, attncl_value x, int64_t n_heads,
                                           attncl_layout layout);
ATTNCL_API attncl_value attncl_merge_heads(attncl_graph *g, attncl_value x, attncl_layout layout);
typedef struct attncl_mha_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;
    attncl_value key_weight, key_bias;
    attncl_value value_weight, value_bias;
    attncl_value output_weight, output_bias;
} attncl_mha_params;
#define ATTNCL_MHA_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_mha_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_multi_head_attention(
    attncl_graph *g, const attncl_attention_desc *desc, const attncl_mha_params *params,
    int64_t n_heads, const attncl_attention_inputs *inputs, attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_multi_head_attention_step(attncl_graph *g,
                                                         const attncl_mha_params *params,
                                                         int64_t n_heads, int64_t limit,
                                                         attncl_value x, attncl_value position,
                                                         attncl_value residual);
typedef enum attncl_pooling_kernel {
    ATTNCL_POOL_GAUSSIAN = 0,
    ATTNCL_POOL_BOXCAR = 1,
    ATTNCL_POOL_CONSTANT = 2,
    ATTNCL_POOL_EPANECHIKOV = 3,
} attncl_pooling_kernel;
ATTNCL_API attncl_value attncl_attention_pooling(attncl_graph *g, attncl_pooling_kernel kind,
                                                 float sigma, attncl_value x_train,
                                                 attncl_value y_train, attncl_value x_val,
                                                 attncl_value *weights_ret);
ATTNCL_END
#endif
