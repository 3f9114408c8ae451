// SPDX-License-Identifier: MIT
/**
 * @file attncl/recurrent.h
 * Gated recurrent units (Cho et al. 2014), PyTorch's form: gates in the order r, z, n, the reset
 * gate after the linear map of the state.  Layout [T, B, I] -> [T, B, H].
 *
 *     n = tanh(W_in x + b_in + r * (W_hn h + b_hn)),   h' = (1 - z) n + z h
 */
#ifndef ATTNCL_RECURRENT_H
#define ATTNCL_RECURRENT_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/** One layer's parameters. */
typedef struct attncl_gru_params {
    attncl_value weight_ih, bias_ih; /**< [3 H, I], [3 H] */
    attncl_value weight_hh, bias_hh; /**< [3 H, H], [3 H] */
} attncl_gru_params;

/**
 * One step of one layer.
 * @param xi  [B, 3 H]: W_ih x + b_ih, made for a whole sequence by one product
 * @param h   [B, H], the state before
 * @return    [B, H], the state after
 */
ATTNCL_API attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params,
                                        attncl_value xi, attncl_value h);

/**
 * One layer over a sequence: x [T, B, I], h0 [B, H] or null (zeros) -> [T, B, H].  The input half
 * is one product over all steps.
 * @param last_ret  NULL, or receives the state after the last step, [B, H]
 */
ATTNCL_API attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                                   attncl_value h0, attncl_value *last_ret);

ATTNCL_END

#endif
