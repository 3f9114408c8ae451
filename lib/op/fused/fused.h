// SPDX-License-Identifier: MIT
// Fused ops, for the compiler passes that create them (compile/): inputs, and support by device.
#ifndef ATTNCL_OP_FUSED_FUSED_H
#define ATTNCL_OP_FUSED_FUSED_H

#include "op/matmul/matmul.h"

// -- fused_linear_fwd, whose first inputs are those of linear_fwd

enum fused_linear_input {
    FUSED_LINEAR_NORM_W = N_LINEAR_INPUTS, // [in]
    FUSED_LINEAR_NORM_B,                   // absent: RMS normalisation
    FUSED_LINEAR_PARTIALS,                 // [S, m, in], which x lacks; needs a norm
    FUSED_LINEAR_PARTIALS_BIAS,            // [in]
    FUSED_LINEAR_POSITION, // present: x is an attention step's unmerged parts [B, H, parts, 2 + D]
    FUSED_LINEAR_MORE,     // weights and biases of the other products; all weights or none
    N_FUSED_LINEAR_INPUTS = FUSED_LINEAR_MORE + 2 * GEMM_MAX_OTHERS
};

// Whether this device computes it in one launch, faster than in several.
bool attncl__fused_linear_supported(const struct op_sig *sig);

// -- split_k_reduce_fwd

enum { SPLIT_K_PARTIALS, SPLIT_K_BIAS, SPLIT_K_RESIDUAL, N_SPLIT_K_INPUTS };

// -- fused_step_fwd: a layer's decode step, from the layer norm to the output projection, in one launch:
//
//   x' = x + (partials_bias + sum_s partials[s])     the residual stream; without partials x' = x
//   h = LN(x') W_i^T + b_i, ...                      input projections
//   sum_g out[g] = inner(h) Wo^T                     inner: an AFT or attention step, or an activation
//
// AFT channels, attention heads and hidden units do not mix before the output projection, so blocks of
// them are independent: block g writes the partial sum out[g], which the consumer adds (split-K).
// compile/fusion_step.c creates this op.

// POS_BIAS (or attention's slopes), POSITION, SUMS, KEYS and VALUES are inputs of aft_step_fwd or
// attention_step_fwd.  A feed-forward network has only the input projection q.
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

// Query heads that share a key and value head.
static inline int64_t attncl__fused_step_kv_group(const struct op_sig *sig)
{
    const struct tensor_desc *wk = &sig->in[FUSED_WK];
    return attncl__desc_present(wk) && wk->dim[0] > 0 ? sig->in[FUSED_WQ].dim[0] / wk->dim[0] : 1;
}

// The number of channel blocks that suits the device, at least 1.
int32_t attncl__fused_step_blocks(const struct op_sig *sig);

// Whether the kernel runs on this device with params->n_blocks blocks.  It needs a layer norm, few
// rows, contiguous inputs, unquantised weights of one type, widths of whole vectors, and enough local
// memory.
bool attncl__fused_step_supported(const struct op_sig *sig);

#endif
