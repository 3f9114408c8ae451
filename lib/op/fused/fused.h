// SPDX-License-Identifier: MIT
// Fused ops, for the patterns of compile/ that create them: inputs, and where they run.
#ifndef ATTNCL_OP_FUSED_FUSED_H
#define ATTNCL_OP_FUSED_FUSED_H

#include "op/matmul/matmul.h"

// -- fused_linear_fwd, whose first inputs are those of linear_fwd

enum fused_linear_input {
    FUSED_LINEAR_NORM_W = N_LINEAR_INPUTS, // [in]; without norm bias RMS normalisation
    FUSED_LINEAR_NORM_B,
    FUSED_LINEAR_POSITION, // present: x is [B, H, parts, 2 + D], as steps of attention leave it
    FUSED_LINEAR_MORE,     // weight and bias of the other products: all weights or none
    N_FUSED_LINEAR_INPUTS = FUSED_LINEAR_MORE + 2 * GEMM_MAX_OTHERS
};

// Whether one launch on this device computes it, and in less time than several would.
bool attncl__fused_linear_supported(const struct op_sig *sig);

// -- split_k_reduce_fwd

enum { SPLIT_K_PARTIALS, SPLIT_K_BIAS, SPLIT_K_RESIDUAL, N_SPLIT_K_INPUTS };

// -- fused_step_fwd: one position of a layer for a few rows, from the layer norm to the output projection, one launch:
//
//   x' = x + (partials_bias + sum_s partials[s])     the residual stream; without partials x' = x
//   h = LN(x') W_i^T + b_i, ...                      input projections
//   sum_g out[g] = inner(h) Wo^T                     inner: a step of AFT or attention, an activation
//
// Channels of AFT, heads of attention and hidden units do not mix before the output projection, so that blocks of them
// are independent: block g leaves the partial sum out[g], which the consumer adds (split-K).  Decoding has no gradient,
// and neither has this op; compile/fusion_step.c creates it.

// Position and states are those of aft_step_fwd and attention_step_fwd, as is pos_bias, which stands for slopes too.  The one input projection of a
// feed-forward network is q.
enum fused_step_input {
    FUSED_X,
    FUSED_NORM_W,
    FUSED_NORM_B,
    FUSED_PARTIALS,
    FUSED_PARTIALS_BIAS,
    FUSED_WQ,
    FUSED_BQ,
    FUSED_WK,
    FUSED_BK,
    FUSED_WV,
    FUSED_BV,
    FUSED_WO,
    FUSED_POS_BIAS,
    FUSED_POSITION,
    FUSED_SUMS,
    FUSED_KEYS,
    FUSED_VALUES,
    N_FUSED_INPUTS
};

// Outputs: [n_blocks, m, d_out]; x', like x, absent without partials.
enum fused_step_output { FUSED_PARTIAL_SUMS, FUSED_RESIDUAL_OUT };

enum fused_step_kind { FUSED_AFT, FUSED_ATTENTION, FUSED_FFN, N_FUSED_STEPS };

// Query heads that share a key and value head; 1 where k is as wide as q.
static inline int64_t attncl__fused_step_kv_group(const struct op_sig *sig)
{
    const struct tensor_desc *wk = &sig->in[FUSED_WK];
    return attncl__desc_present(wk) && wk->dim[0] > 0 ? sig->in[FUSED_WQ].dim[0] / wk->dim[0] : 1;
}

// The number of channel blocks that suits the device; 1 at least.
int32_t attncl__fused_step_blocks(const struct op_sig *sig);

// Whether the kernel runs on this device, with params->n_blocks blocks: a layer norm, few rows, contiguous
// inputs, weights of one type that is not quantised, widths of whole vectors, enough local memory.
bool attncl__fused_step_supported(const struct op_sig *sig);

#endif
