// SPDX-License-Identifier: MIT
/**
 * @file attncl/aft.h
 * Attention-free transformer layers (Zhai et al. 2021, arXiv 2105.14103).  Layout [T, B, C].
 *
 *     y_i = sigmoid(q_i) * sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j)
 *
 * per batch entry and channel.
 */
#ifndef ATTNCL_AFT_H
#define ATTNCL_AFT_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/** Which position bias w: the whole table, the table where |i - j| < window else 0, or 0. */
typedef enum attncl_aft_kind {
    ATTNCL_AFT_LOCAL = 0,
    ATTNCL_AFT_FULL = 1,
    ATTNCL_AFT_SIMPLE = 2,
} attncl_aft_kind;

/** How one AFT behaves.  Start from ATTNCL_AFT_DESC_INIT. */
typedef struct attncl_aft_desc {
    size_t struct_size;
    attncl_aft_kind kind;
    int64_t window; /**< AFT-local: |i - j| < window have a bias; 0 acts as AFT-simple */
    int causal;     /**< 1: position i sees j <= i only, cheaper than the same mask as a tensor */
} attncl_aft_desc;

#define ATTNCL_AFT_DESC_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_aft_desc), ATTNCL_AFT_LOCAL, 0, 0                                            \
    }

/**
 * The mixing alone: y from q, k, v.
 *
 * @param q, k, v   [T, B, C], F32
 * @param pos_bias  [n, n] with n >= T, of which the top left [T, T] is used; null for AFT-simple
 * @param mask      U8 [T or 1, T, B or 1], non-zero = visible; null: all (or j <= i when causal).
 * Not with causal.
 * @return          [T, B, C].  A row that sees no key gives 0.
 *
 * Cost O(T window C B) without a mask or causal, O(T^2 C B) with one.  Stable for every finite
 * input: each row, batch entry and channel has its own maximum.
 */
ATTNCL_API attncl_value attncl_aft_mix(attncl_graph *g, const attncl_aft_desc *desc, attncl_value q,
                                       attncl_value k, attncl_value v, attncl_value pos_bias,
                                       attncl_value mask);

/** A layer's parameters; null values for absent biases and, in AFT-simple, pos_bias. */
typedef struct attncl_aft_params {
    attncl_value query_weight, query_bias;   /**< [C, C], [C] */
    attncl_value key_weight, key_bias;       /**< [C, C], [C] */
    attncl_value value_weight, value_bias;   /**< [C, C], [C] */
    attncl_value pos_bias;                   /**< [n, n] */
    attncl_value output_weight, output_bias; /**< [C, C], [C] */
} attncl_aft_params;

/**
 * The whole layer: linear maps of query, key and value [T, B, C], the mixing, and the output map.
 * @param residual  added to the result in the same kernel; null: nothing
 */
ATTNCL_API attncl_value attncl_aft(attncl_graph *g, const attncl_aft_desc *desc,
                                   const attncl_aft_params *params, attncl_value query,
                                   attncl_value key, attncl_value value, attncl_value mask,
                                   attncl_value residual);

/**
 * One position of the causal layer for decoding: x [B, C] -> [B, C].
 * @param position  I32 [1] in device memory: this token's place, counted from 0
 * Keeps its state (O(window B C)) in the graph; cost O(window B C) beside the linear maps.
 */
ATTNCL_API attncl_value attncl_aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                                        const attncl_aft_params *params, attncl_value x,
                                        attncl_value position, attncl_value residual);

ATTNCL_END

#endif
