// SPDX-License-Identifier: MIT
/**
 * @file attncl/recurrent.h
 * Gated recurrent units (Cho et al. 2014, arXiv 1406.1078) in PyTorch's form, with gates in the order r, z, n and the
 * reset gate after the linear map of the state; plain ones of one activation, as torch.nn.RNN has them; and the
 * attention decoder of Bahdanau et al. 2014 (arXiv 1409.0473).
 *
 *     r, z = sigmoid(W_i x + b_i + W_h h + b_h)
 *     n = tanh(W_in x + b_in + r * (W_hn h + b_hn)),   h' = (1 - z) n + z h
 *
 * NaN in a step's x or in a state makes all later states of that batch entry NaN, and with them the gradients of all
 * that they were computed from.  An infinite argument of a gate gives the gate's limit and gradient 0.
 *
 * Letters: B batch, T steps, I input width, H hidden width, E embedding width, S source length, N
 * width of attention.  Sequences are [T, B, .] or [B, T, .], as their layout says.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_RECURRENT_H
#define ATTNCL_RECURRENT_H

#include "attncl/dropout.h"
#include "attncl/graph.h"
#include "attncl/kinds.h"

ATTNCL_BEGIN

/** One layer's parameters.  Plain units have weights and biases of H rows where gated ones have 3 H. */
typedef struct attncl_gru_params {
    size_t struct_size;
    attncl_value weight_ih, bias_ih; /**< [3 H, I], [3 H] */
    attncl_value weight_hh, bias_hh; /**< [3 H, H], [3 H] */
    const attncl_dropout_desc
        *dropout;            /**< of what the layer reads, borrowed; NULL: none.  A decoder's
                                           has row t for step t, and none for layers[0] */
    attncl_activation plain; /**< TANH or RELU: plain units, h' = plain(W_i x + b_i + W_h h + b_h);
                                  IDENTITY: gated ones */
    int reversed;            /**< not 0: from the last step to the first */
    attncl_value lens; /**< I32 [B] or null: steps of each entry, as of PyTorch's packed sequences;
                            gated units only.  From its length on an entry's output is 0 and its state
                            stays, so that a reversed layer begins with step length - 1; its x does not
                            count, but weight_ih's gradient has 0 times it.  Below 1: none; beyond T: all */
} attncl_gru_params;

#define ATTNCL_GRU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_gru_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, NULL, ATTNCL_IDENTITY, 0, ATTNCL_VALUE_INIT                         \
    }

/**
 * One step of one layer.  weight_ih, bias_ih and lens are not used.
 * @param xi  [B, 3 H]: W_ih x + b_ih
 * @param h   [B, H], the state before, or null: zeros
 * @return    [B, H], the state after
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params,
                                        attncl_value xi, attncl_value h);

/**
 * One layer over a sequence: x [T, B, I] -> [T, B, H], or [B, T, I] -> [B, T, H].  The input half
 * is one GEMM over all steps; a step is one GEMM and one kernel.  ERR_SHAPE when T is 0.
 * @param h0        [B, H], the state before the step that is taken first, or null: zeros
 * @param last_ret  NULL, or receives the state after the step that is taken last, [B, H], a view
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                                   attncl_value h0, attncl_layout layout, attncl_value *last_ret);

/**
 * Stacked layers: layer k > 0 reads the output of layer k - 1.  A reversed layer after one that is not
 * reads what that reads, and both outputs side by side, [.., .., 2 H], are the pair's (a bidirectional layer).
 * @param layers  n_layers of them, at least 1, borrowed for the call
 * @param states  n_layers states: each layer's before the first step (null: zeros), replaced by
 * that after the last
 * @return        the output of the last layer or pair, of the shape that attncl_gru() gives
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_gru_layers(attncl_graph *g, const attncl_gru_params *layers,
                                          size_t n_layers, attncl_value x, attncl_layout layout,
                                          attncl_value *states);

/**
 * Parameters of an attention decoder.  At each step the top layer's state is the query, and the first layer reads
 * cat(context, embedding of the token).
 */
typedef struct attncl_bahdanau_params {
    size_t struct_size;
    attncl_value query_weight;       /**< [N, H] */
    attncl_value key_weight;         /**< [N, H] */
    attncl_value score_weight;       /**< [N] or [1, N] */
    const attncl_gru_params *layers; /**< layers[0].weight_ih [3 H, H + E]; borrowed */
    size_t n_layers;                 /**< at least 1 */
    const attncl_dropout_desc
        *dropout; /**< of the attention's weights [B, 1, S], which are row t for
                                           step t, borrowed; NULL: none */
} attncl_bahdanau_params;

#define ATTNCL_BAHDANAU_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            NULL, 0, NULL                                                                          \
    }

/** What a decoder attends to. */
typedef struct attncl_bahdanau_source {
    size_t struct_size;
    attncl_value keys;       /**< [B, S, N], projected once for all steps */
    attncl_value values;     /**< [B, S, H] */
    attncl_value valid_lens; /**< I32 [B] or null, as attncl_additive_attention() takes it */
} attncl_bahdanau_source;

#define ATTNCL_BAHDANAU_SOURCE_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_source), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT    \
    }

/**
 * Makes an encoder's outputs [B, S, H] the source that a decoder attends to.
 * @param source_ret  filled; null values in it when the graph has failed
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_bahdanau_attend(attncl_graph *g, const attncl_bahdanau_params *params,
                                       attncl_value outputs, attncl_value valid_lens,
                                       attncl_bahdanau_source *source_ret);

/**
 * The tokens' part of the first layer's input product, embedded [..., E] -> [..., 3 H]: one GEMM for all known tokens.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_bahdanau_input(attncl_graph *g, const attncl_bahdanau_params *params,
                                              attncl_value embedded);

/**
 * One step.
 * @param input        [B, 1, 3 H]: the token's part by attncl_bahdanau_input(); may be a view
 * @param states       n_layers states [B, H], replaced by those after the step
 * @param weights_ret  NULL, or receives the attention weights [B, 1, S]
 * @return             the top layer's state, [B, 1, H]
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_bahdanau_step(attncl_graph *g, const attncl_bahdanau_params *params,
                                             const attncl_bahdanau_source *source,
                                             attncl_value input, attncl_value *states,
                                             attncl_value *weights_ret);

/**
 * All steps of known tokens (teacher forcing).
 * @param embedded     [B, T, E], T at least 1
 * @param states       as attncl_bahdanau_step()
 * @param weights_ret  NULL, or receives [B, T, S]
 * @return             the top layer's states, [B, T, H]
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_bahdanau_decoder(attncl_graph *g,
                                                const attncl_bahdanau_params *params,
                                                const attncl_bahdanau_source *source,
                                                attncl_value embedded, attncl_value *states,
                                                attncl_value *weights_ret);

ATTNCL_END

#endif
