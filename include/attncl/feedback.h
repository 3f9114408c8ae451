// SPDX-License-Identifier: MIT
/**
 * @file attncl/feedback.h
 * Feedback Transformer (Fan et al. 2020, arXiv 2002.09402): every layer of a step attends to one
 * shared memory of the steps before.  Letters: B batch, H heads, D = C / H, S memories, P most
 * positions.
 *
 * NaN in a step's value makes its memory NaN, and with it all later steps of that batch entry.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_FEEDBACK_H
#define ATTNCL_FEEDBACK_H

#include "attncl/attention.h"
#include "attncl/transformer.h"

ATTNCL_BEGIN

/** Parameters of a feedback attention; null values for what a form does not have. */
typedef struct attncl_feedback_params {
    size_t struct_size;
    attncl_value query_weight;               /**< [C, C] */
    attncl_value key_weight;                 /**< [C, C]; null: keys are given projected */
    attncl_value value_weight, value_bias;   /**< [C, C], [C]; null with key_weight */
    attncl_value output_weight, output_bias; /**< [C, C], [C] */
    attncl_value key_pos_embeddings;         /**< [P, H, D]; row P - distance */
    attncl_value query_pos_bias;             /**< [H, D] */
    attncl_value key_pos_bias;               /**< [P, H]: split scores; null: joint */
    const attncl_dropout_desc *dropout;      /**< of the weights [B, H, S] before they meet the
                                                values, borrowed; NULL: none.  Of a sequence's
                                                step t: row t of [T, B, H, T - 1] */
} attncl_feedback_params;

#define ATTNCL_FEEDBACK_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_feedback_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL                                             \
    }

/**
 * Attention of one query to S memories.
 *
 * joint: ((q + u) . (k_j + U_j)) / sqrt(D);  split: ((q + u) . k_j + q . U_j + S_j) / sqrt(D).
 *
 * @param inputs       query [B, C]; key and value [S, B, C], or projected [S, B, H, D] when params
 * has no key_weight, S <= P; residual [B, C]; no mask, no valid_lens
 * @param weights_ret  NULL, or receives [S, B, H]
 * @return             [B, C]; no memory (S = 0) gives the output bias
 *
 * Stable for scores of any size; one kernel, and no [S, B, H] buffer unless the weights are asked
 * for.  Source: Fan et al. 2020, 3.2; relative positions: Dai et al. 2019, arXiv 1901.02860.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_feedback_attention(attncl_graph *g,
                                                  const attncl_feedback_params *params,
                                                  int64_t n_heads,
                                                  const attncl_attention_inputs *inputs,
                                                  attncl_value *weights_ret);

/** One layer: attention to the memory (skipped without one), then the feed-forward network; both
 * pre-norm. */
typedef struct attncl_feedback_layer_params {
    size_t struct_size;
    attncl_value norm_attn_weight, norm_attn_bias; /**< [C] */
    const attncl_feedback_params *attn;            /**< borrowed for the call */
    attncl_value norm_ffn_weight, norm_ffn_bias;   /**< [C] */
    const attncl_ffn_params *ffn;                  /**< borrowed for the call */
    attncl_activation activation;
    double norm_eps; /**< of both layer norms; 0: 1e-5 */
    /** Of what the attention and the feed-forward network add to x, borrowed; NULL: none.  Of a
     * sequence's step t: row t of [T, B, C]; so is ffn's. */
    const attncl_dropout_desc *attn_dropout, *ffn_dropout;
} attncl_feedback_layer_params;

#define ATTNCL_FEEDBACK_LAYER_PARAMS_INIT                                                          \
    {                                                                                              \
        sizeof(attncl_feedback_layer_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL,          \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL, ATTNCL_IDENTITY, 0, NULL, NULL             \
    }

/** x [B, C], memory [S, B, C] or null -> [B, C].  Without memory x passes by the attention.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_feedback_layer(attncl_graph *g,
                                              const attncl_feedback_layer_params *params,
                                              int64_t n_heads, attncl_value x, attncl_value memory);

/**
 * The whole model's parameters.  Keys and values of a step's memory come from one GEMM when
 * key_value_weight is given: then the layers need no key_weight, value_weight and value_bias.
 */
typedef struct attncl_feedback_transformer_params {
    size_t struct_size;
    const attncl_feedback_layer_params *layers; /**< n_layers, borrowed for the call */
    size_t n_layers;
    int64_t n_heads;
    attncl_value
        weights; /**< [n_layers + 1]: softmax of it mixes a step's values into its memory */
    attncl_value key_value_weight; /**< [2 N C, C]: rows of key, value of layer 0, key, value of
                                      layer 1 ...; N = n_layers, or 1: shared by all layers; null:
                                      each layer's own */
    attncl_value key_value_bias;   /**< [2 N C], or null */
    attncl_value norm_weight, norm_bias; /**< [C] */
    double norm_eps;                     /**< of the last layer norm; 0: 1e-5 */
} attncl_feedback_transformer_params;

#define ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT                                                    \
    {                                                                                              \
        sizeof(attncl_feedback_transformer_params), NULL, 0, 0, ATTNCL_VALUE_INIT,                 \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, 0          \
    }

/**
 * A sequence, step by step within one run: every step is the same compiled nodes, which find their
 * place in device memory; the host waits for none.  Keys and values of a memory are projected once.
 *
 * @param x           [T, B, C], T at most P + 1
 * @param memory_ret  NULL, or receives the memories, [T, B, C]
 * @return            [T, B, C], after the last layer norm
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value
attncl_feedback_transformer(attncl_graph *g, const attncl_feedback_transformer_params *params,
                            attncl_value x, attncl_value *memory_ret);

/**
 * One step: keys and values of the memories so far are kept in the graph, projected once and
 * appended in place.
 *
 * @param limit       most steps, at most P + 1
 * @param x           [B, C]
 * @param position    I32 [1] in device memory: the step's place, counted from 0; 0 starts anew
 * @param memory_ret  NULL, or receives this step's memory, [B, C]
 * @return            [B, C], after the last layer norm
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_feedback_transformer_step(
    attncl_graph *g, const attncl_feedback_transformer_params *params, int64_t limit,
    attncl_value x, attncl_value position, attncl_value *memory_ret);

ATTNCL_END

#endif
