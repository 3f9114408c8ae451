// SPDX-License-Identifier: MIT
/**
 * @file attncl/aft.h
 * Attention-free transformer layers (Zhai et al. 2021, arXiv 2105.14103).  Layout [T, B, C].
 *
 *     y_i = sigmoid(q_i) * sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j)
 *
 * per batch entry and channel.  AFT-conv has heads: the C / H channels of a head share one key and
 * one bias for each distance.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_AFT_H
#define ATTNCL_AFT_H

#include "attncl/attention.h"

ATTNCL_BEGIN

/**
 * Which position bias w: AFT-full the whole table, AFT-local the table where |i - j| < window else
 * 0, AFT-simple 0, AFT-conv w[head, j - i + (s - 1) / 2] where that exists else 0 (the paper's
 * eq. 6).
 */
typedef enum attncl_aft_kind {
    ATTNCL_AFT_LOCAL = 0,
    ATTNCL_AFT_FULL = 1,
    ATTNCL_AFT_SIMPLE = 2,
    ATTNCL_AFT_CONV = 3,
} attncl_aft_kind;

/** How one AFT behaves.  Start from ATTNCL_AFT_DESC_INIT. */
typedef struct attncl_aft_desc {
    size_t struct_size;
    attncl_aft_kind kind;
    int64_t
        window; /**< AFT-local: pairs with |i - j| < window have a bias, 0: none has; -1 is refused */
    int causal; /**< 1: position i sees only j <= i; cheaper than the same mask as a tensor */
} attncl_aft_desc;

#define ATTNCL_AFT_DESC_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_aft_desc), ATTNCL_AFT_LOCAL, -1, 0                                           \
    }

/**
 * AFT's mixing, without the linear maps: y from q, k, v.
 *
 * @param q, k, v   [T, B, C], F32; AFT-conv: k [T, B, H], H divides C
 * @param pos_bias  [n, n] with n >= T, of which the top left [T, T] is used; null for AFT-simple;
 * AFT-conv: [H, s], s odd
 * @param mask      U8 [T or 1, T, B or 1], non-zero = visible; null: all (or j <= i when causal).
 * Not with causal.
 * @return          [T, B, C].  A row that sees no key gives 0.  NaN and infinity in a key, value or bias
 * may reach rows of their batch entry and channel that do not see it, as 0 times it.
 *
 * Cost O(T window C B), AFT-conv O(T s C B), without a mask, O(T^2 C B) with one.  Stable for keys and biases up to
 * 1e38 in magnitude: each row, batch entry and channel has its own maximum.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_aft_mix(attncl_graph *g, const attncl_aft_desc *desc, attncl_value q,
                                       attncl_value k, attncl_value v, attncl_value pos_bias,
                                       attncl_value mask);

/** A layer's parameters; null values for absent biases and, in AFT-simple, pos_bias. */
typedef struct attncl_aft_params {
    size_t struct_size;
    attncl_value query_weight, query_bias;   /**< [C, C], [C] */
    attncl_value key_weight, key_bias;       /**< [C, C], [C]; AFT-conv: [H, C], [H] */
    attncl_value value_weight, value_bias;   /**< [C, C], [C] */
    attncl_value pos_bias;                   /**< [n, n]; AFT-conv: [H, s] */
    attncl_value output_weight, output_bias; /**< [C, C], [C] */
} attncl_aft_params;

#define ATTNCL_AFT_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_aft_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,            \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                                                   \
    }

/**
 * The AFT layer: linear maps of query, key and value, the mixing, and the output map.
 * @param inputs  query, key, value and residual [T, B, C]; mask as attncl_aft_mix(); no valid_lens
 * @return        [T, B, C]
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_aft(attncl_graph *g, const attncl_aft_desc *desc,
                                   const attncl_aft_params *params,
                                   const attncl_attention_inputs *inputs);

/**
 * One position of the causal layer for decoding: x [B, C] -> [B, C].
 * @param position  I32 [1] in device memory: this token's place, counted from 0
 * Keeps its state (O(window B C)) in the graph; cost O(window B C) beside the linear maps.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                                        const attncl_aft_params *params, attncl_value x,
                                        attncl_value position, attncl_value residual);

ATTNCL_END

#endif
