// SPDX-License-Identifier: MIT
/**
 * @file attncl/attention.h
 * Softmax attention: scaled dot-product, multi-head, additive.
 *
 *     out_i = sum_j p_ij v_j,   p_ij = softmax over visible j of score_ij
 *
 * Letters: B batch, H heads, G key and value heads, T queries, S keys, D head width, E value width.  All
 * values may be views: heads are cut out of a projection by attncl_split_heads() without a copy.
 *
 * G is H or a divisor of it.  Query head h reads key and value head h / (H / G): grouped-query attention,
 * with G = 1 multi-query attention.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_ATTENTION_H
#define ATTNCL_ATTENTION_H

#include "attncl/dropout.h"
#include "attncl/graph.h"
#include "attncl/kinds.h"
#include "attncl/ops.h"

ATTNCL_BEGIN

/** How one attention behaves.  Start from ATTNCL_ATTENTION_DESC_INIT; zero means default. */
typedef struct attncl_attention_desc {
    size_t struct_size;
    float scale;          /**< 0: 1/sqrt(D) */
    int causal;           /**< 1: query i sees keys j <= i + S - T (the last query sees all) */
    int64_t window;       /**< > 0: only keys with |i + S - T - j| < window are seen */
    attncl_layout layout; /**< where the result lies: [T, B, H, E] or [B, T, H, E] in memory */
    const attncl_dropout_desc
        *dropout; /**< of the weights [B, H, T, S] before they meet the values,
                                           borrowed; NULL: none */
    attncl_value
        rotary; /**< of multi-head attention: attncl_rotary_table(), by which queries and keys turn; null: none */
    attncl_rotary_pairs rotary_pairs;
    float qk_norm_eps; /**< of query_norm and key_norm; 0: 1e-6 */
    float softcap;     /**< > 0: scores become softcap tanh(score / softcap) */
    int hard_lens; /**< 1: keys at or beyond their length are not seen, instead of scoring -1e6 */
    attncl_value
        slopes; /**< [H], attncl_alibi_slopes() (arXiv 2108.12409): slope (j - i - S + T) is added to the score of query i
                     and key j; constants, without a gradient; null: none */
} attncl_attention_desc;

#define ATTNCL_ATTENTION_DESC_INIT                                                                 \
    {                                                                                              \
        sizeof(attncl_attention_desc), 0.0f, 0, 0, ATTNCL_LAYOUT_TIME_FIRST, NULL,                 \
            ATTNCL_VALUE_INIT, ATTNCL_ROTARY_HALVES, 0.0f, 0.0f, 0, ATTNCL_VALUE_INIT              \
    }

/** What an attention or AFT layer reads.  Null values for what is absent. */
typedef struct attncl_attention_inputs {
    size_t struct_size;
    attncl_value query, key, value;
    attncl_value mask;       /**< which keys a query sees */
    attncl_value valid_lens; /**< how many keys a query sees */
    attncl_value residual;   /**< added to a layer's result in the same kernel */
    attncl_value bias;       /**< added to scores */
} attncl_attention_inputs;

#define ATTNCL_ATTENTION_INPUTS_INIT                                                               \
    {                                                                                              \
        sizeof(attncl_attention_inputs), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,  \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT             \
    }

/**
 * Scaled dot-product attention, one fused kernel with an online softmax: no [T, S] buffer unless
 * the weights are asked for.
 *
 * @param desc         borrowed for the call; NULL: all defaults
 * @param inputs       query [B, H, T, D], key [B, G, S, D], value [B, G, S, E]; only a CPU's local memory
 *                     limits D and E: beyond it compiling is ERR_UNSUPPORTED.
 *                     mask, valid_lens, causal and window go together: a query sees a key that none of them hides.
 *                     mask U8 [T or 1, S, B or 1], non-zero: visible; null: all keys are;
 *                     valid_lens I32 [B] or [B, T]: keys at or beyond the length score -1e6, and length 0 gives equal
 *                     weights, unless desc->hard_lens hides them; null: none;
 *                     bias [B or 1, H or 1, T or 1, S], added to scores after a soft cap, -inf hides a key; it has a
 *                     gradient; null: none
 * @param weights_ret  NULL, or receives the weights [B, H, T, S] before dropout
 * @return             [B, H, T, E], a view laid out in memory as desc->layout says, so that attncl_merge_heads()
 *                     copies nothing
 *
 * A query that sees no key, or whose scores are all -inf, gets the result 0 and weights 0.  NaN in a query, or in a
 * key that it sees, makes its row NaN; the weights of keys it does not see are then 0 or NaN.  Otherwise keys that a
 * query does not see have no effect on it, with one exception: NaN or infinity in their values may reach the result,
 * as 0 times it, depending on the device's tiles.
 *
 * Cost B H T S (2 D + 2 E), causal half of it, valid_lens the valid part.  Source: Vaswani et al.
 * 2017, eq. 1; online softmax: Milakov and Gimelshein 2018, arXiv 1805.02867.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_attention(attncl_graph *g, const attncl_attention_desc *desc,
                                         const attncl_attention_inputs *inputs,
                                         attncl_value *weights_ret);

/**
 * The slopes of attention with linear biases as published, F32 [H]: 2^(-max k / H) for k = 1 .. H; where H is no
 * power of two, those of the next lower one, then every other one of twice as many.  A constant of the graph.
 *
 * @param max  8 in the paper, BLOOM and MPT
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_NO_MEMORY, kept by the graph.
 */
ATTNCL_API attncl_value attncl_alibi_slopes(attncl_graph *g, int64_t n_heads, double max);

/**
 * Additive attention (Bahdanau et al. 2014): score_ij = w . tanh(q_i + k_j), never forming [B, T,
 * S, N].
 *
 * @param q            [B, T, N], projected queries
 * @param k            [B, S, N], projected keys
 * @param v            [B, S, E]
 * @param w            [N] or [1, N]
 * @param valid_lens   as attncl_attention()
 * @param weights_ret  NULL, or receives [B, T, S]
 * @return             [B, T, E]
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_additive_attention(attncl_graph *g, attncl_value q, attncl_value k,
                                                  attncl_value v, attncl_value w,
                                                  attncl_value valid_lens,
                                                  attncl_value *weights_ret);

/** [T, B, C] or [B, T, C] as [B, H, T, C / H]: a view.  ERR_SHAPE when H does not divide C.
 * Errors: ERR_ARGUMENT for an unknown layout, ERR_SHAPE, kept by the graph. */
ATTNCL_API attncl_value attncl_split_heads(attncl_graph *g, attncl_value x, int64_t n_heads,
                                           attncl_layout layout);

/** [B, H, T, E] as [T, B, H E] or [B, T, H E]: a view where the memory is laid out so already, else one copy.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_merge_heads(attncl_graph *g, attncl_value x, attncl_layout layout);

/** Parameters of a multi-head attention; null values for absent biases. */
typedef struct attncl_mha_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;   /**< [C, query width], [C] */
    attncl_value key_weight, key_bias;       /**< [G C / H, key width], [G C / H] */
    attncl_value value_weight, value_bias;   /**< [G C / H, value width], [G C / H] */
    attncl_value output_weight, output_bias; /**< [C out, C], [C out] */
    attncl_value query_norm, key_norm; /**< [D], weights of an RMS norm of each head; null: none */
} attncl_mha_params;

#define ATTNCL_MHA_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_mha_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                \
    }

/**
 * Multi-head attention: projections, attention of H heads of width C / H, output projection.  The rows of
 * the key's weight say how many key and value heads there are.
 *
 * @param desc               borrowed for the call; NULL: all defaults
 * @param inputs             query [T, B, .], key and value [S, B, .], or batch first, as
 * desc->layout says; residual like the result
 * @param weights_ret        NULL, or receives [B, H, T, S]
 * @return                   [T, B, C out] or [B, T, C out]
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_multi_head_attention(
    attncl_graph *g, const attncl_attention_desc *desc, const attncl_mha_params *params,
    int64_t n_heads, const attncl_attention_inputs *inputs, attncl_value *weights_ret);

/**
 * One position of causal multi-head self-attention for decoding: x [B, C] -> [B, C out], position
 * I32 [1] or [B] in device memory: one for all, or one for each entry, of which a negative one appends nothing.
 * Keys and values of `limit` positions, G heads of them, are kept in the graph
 * and appended in place.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_multi_head_attention_step(attncl_graph *g,
                                                         const attncl_mha_params *params,
                                                         int64_t n_heads, int64_t limit,
                                                         attncl_value x, attncl_value position,
                                                         attncl_value residual);

/** A kernel of attncl_attention_pooling(). */
typedef enum attncl_pooling_kernel {
    ATTNCL_POOL_GAUSSIAN = 0,
    ATTNCL_POOL_BOXCAR = 1,
    ATTNCL_POOL_CONSTANT = 2,
    ATTNCL_POOL_EPANECHIKOV = 3,
} attncl_pooling_kernel;

/**
 * Nadaraya-Watson kernel regression: weights_ij = K(x_train_i - x_val_j), each column j normalised.
 *
 * @param kind         Gaussian exp(-u^2 / (2 sigma^2)), boxcar |u| < 1, constant, Epanechikov max(1 - |u|, 0)
 * @param x_train      [n], as y_train
 * @param x_val        [m]
 * @param weights_ret  NULL, or receives [n, m]
 * @return             [m]; where the kernel is 0 for all of x_train, weights and result are 0
 *
 * Except for the constant kernel, NaN in x_train makes all results NaN, and NaN in x_val its own; for the Gaussian,
 * so does infinity in x_val.  Source: Nadaraya 1964, Watson 1964.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_attention_pooling(attncl_graph *g, attncl_pooling_kernel kind,
                                                 float sigma, attncl_value x_train,
                                                 attncl_value y_train, attncl_value x_val,
                                                 attncl_value *weights_ret);

ATTNCL_END

#endif
