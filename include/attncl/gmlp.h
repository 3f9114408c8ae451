// SPDX-License-Identifier: MIT
/**
 * @file attncl/gmlp.h
 * gMLP (Liu et al. 2021, arXiv 2105.08050).  Layout [T, B, C]; F hidden channels.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_GMLP_H
#define ATTNCL_GMLP_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/** Parameters of a spatial gating unit over F channels and up to n positions. */
typedef struct attncl_sgu_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias; /**< [F/2] */
    attncl_value weight;                 /**< [n, n] */
    attncl_value bias;                   /**< [n] */
    double norm_eps;                     /**< of the layer norm; 0: 1e-5 */
} attncl_sgu_params;

#define ATTNCL_SGU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_sgu_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, 0                                                                   \
    }

/**
 * z1 * (W' LN(z2) + b), z = [z1 | z2] [T, B, F] -> [T, B, F/2]; W' = weight[:T, :T] times the mask.
 * @param causal  1: W' is lower triangular and its upper triangle is not multiplied; not with a
 * mask
 * @param mask    U8 [T or 1, T, 1], multiplicative, or null.  A batch axis other than 1 is an
 * error. An odd F, T > n: ERR_SHAPE.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_spatial_gating_unit(attncl_graph *g, const attncl_sgu_params *params,
                                                   attncl_value z, int causal, attncl_value mask);

/** Parameters of a gMLP block. */
typedef struct attncl_gmlp_params {
    size_t struct_size;
    attncl_value norm_weight, norm_bias;   /**< [C] */
    attncl_value proj1_weight, proj1_bias; /**< [F, C], [F] */
    const attncl_sgu_params *sgu;          /**< borrowed for the call */
    attncl_value proj2_weight, proj2_bias; /**< [C, F/2], [C] */
    double norm_eps;                       /**< of the block's own layer norm; 0: 1e-5 */
} attncl_gmlp_params;

#define ATTNCL_GMLP_PARAMS_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_gmlp_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT, NULL, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, 0                       \
    }

/** x + proj2(SGU(GELU(proj1(LN(x))))): x [T, B, C] -> [T, B, C].  causal and mask as for the gating
 * unit.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_gmlp_block(attncl_graph *g, const attncl_gmlp_params *params,
                                          attncl_value x, int causal, attncl_value mask);

/**
 * One position of the causal block for decoding: x [B, C] -> [B, C]; position I32 [1] in device
 * memory.  Keeps its state (O(n B F)) in the graph; cost O(position B F) beside the linear maps.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_gmlp_step(attncl_graph *g, const attncl_gmlp_params *params,
                                         attncl_value x, attncl_value position);

ATTNCL_END

#endif
