// SPDX-License-Identifier: MIT
/**
 * @file attncl/transformer.h
 * What surrounds a mixing layer: the position-wise feed-forward network.  Layout [..., C]; F hidden
 * channels.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_TRANSFORMER_H
#define ATTNCL_TRANSFORMER_H

#include "attncl/dropout.h"
#include "attncl/ops.h"

ATTNCL_BEGIN

/** A feed-forward network's parameters; null for absent biases, null gate weight: not gated. */
typedef struct attncl_ffn_params {
    size_t struct_size;
    attncl_value layer1_weight, layer1_bias; /**< [F, C], [F] */
    attncl_value gate_weight, gate_bias;     /**< [F, C], [F]: linear_v of a gated network */
    attncl_value layer2_weight, layer2_bias; /**< [C, F], [C] */
    const attncl_dropout_desc *dropout;      /**< of the hidden channels, borrowed; NULL: none */
} attncl_ffn_params;

#define ATTNCL_FFN_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_ffn_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, NULL                          \
    }

/**
 * layer2(dropout(act(layer1 x) [* gate x])) [+ residual]: x [..., C] -> [..., C].  Sources: Vaswani et al.
 * 2017, 3.3; gated forms: Shazeer 2020, arXiv 2002.05202.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_feed_forward(attncl_graph *g, const attncl_ffn_params *params,
                                            attncl_activation activation, attncl_value x,
                                            attncl_value residual);

ATTNCL_END

#endif
