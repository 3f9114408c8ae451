// SPDX-License-Identifier: MIT
#ifndef ATTNCL_FEEDBACK_H
#define ATTNCL_FEEDBACK_H
#include "attncl/attention.h"
#include "attncl/transformer.h"
ATTNCL_BEGIN
typedef struct attncl_feedback_params {
    size_t struct_size;
    attncl_value query_weight;
    attncl_value key_weight;
    attncl_value value_weight, value_bias;
    attncl_value output_weight, output_bias;
    attncl_value key_pos_embeddings;
    attncl_value query_pos_bias;
    attncl_value key_pos_bias;
} attncl_feedback_params;
#define ATTNCL_FEEDBACK_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_feedback_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                                   \
    }
ATTNCL_API attncl_value attncl_feedback_attention(attncl_graph *g,
                                                  const attncl_feedback_params *params,
                                                  int64_t n_heads,
                                                  const attncl_attention_inputs *inputs,
                                                  attncl_value *weights_ret);
typedef struct attncl_feedback_layer_params {
    size_t struct_size;
    attncl_value norm_attn_weight, norm_attn_bias;
    const attncl_feedback_params *attn;
    attncl_value norm_ffn_weight, norm_ffn_bias;
    const attncl_ffn_params *ffn;
    attncl_activation activation;
} attncl_feedback_layer_params;
#define ATTNCL_FEEDBACK_LAYER_PARAMS_INIT                                                          \
    {                                                                                              \
        sizeof(attncl_feedback_layer_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL,          \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL, ATTNCL_IDENTITY                            \
    }
ATTNCL_API attncl_value attncl_feedback_layer(attncl_graph *g,
                                              const attncl_feedback_layer_params *params,
                                              int64_t n_heads, attncl_value x, attncl_value memory);
typedef struct attncl_feedback_transformer_params {
    size_t struct_size;
    const attncl_feedback_layer_params *layers;
    size_t n_layers;
    int64_t n_heads;
    attncl_value weights;
    attncl_value key_value_weight;
    attncl_value key_value_bias;
    attncl_value norm_weight, norm_bias;
} attncl_feedback_transformer_params;
#define ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT                                                    \
    {                                                                                              \
        sizeof(attncl_feedback_transformer_params), NULL, 0, 0, ATTNCL_VALUE_INIT,                 \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT             \
    }
ATTNCL_API attncl_value
attncl_feedback_transformer(attncl_graph *g, const attncl_feedback_transformer_params *params,
                            attncl_value x, attncl_value *memory_ret);
ATTNCL_API attncl_value attncl_feedback_transformer_step(
    attncl_graph *g, const attncl_feedback_transformer_params *params, int64_t limit,
    attncl_value x, attncl_value position, attncl_value *memory_ret);
ATTNCL_END
#endif
