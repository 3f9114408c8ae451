// SPDX-License-Identifier: MIT
// What linear_fwd (gemm.c) and fused_norm_linear_fwd (fused_norm_linear.c) share: inputs, outputs,
// the GEMM.
#ifndef ATTNCL_OP_MATMUL_LINEAR_H
#define ATTNCL_OP_MATMUL_LINEAR_H

#include "gemm/gemm.h"
#include "op/op.h"

enum linear_input {
    LINEAR_X,
    LINEAR_WEIGHT,
    LINEAR_BIAS,
    LINEAR_GATE,
    LINEAR_RESIDUAL,
    N_LINEAR_INPUTS
};

// Sizes and form, no operands.
struct gemm attncl__linear_gemm(const struct op_sig *sig);
// The same with operands and epilogue.
struct gemm attncl__linear_operands(const struct op_call *call,
                                    const struct linear_fwd_params *params);

// How a layer norm in front becomes part of it.
extern const struct op_merge attncl__linear_merge;

// How chains that end in one become two launches (fused_ffn.c, fused_aft_step.c,
// fused_attention_step.c).
extern const struct op_rewrite attncl__fused_ffn_rewrite;
extern const struct op_rewrite attncl__fused_aft_step_rewrite, attncl__fused_aft_step_rewrite_first;
extern const struct op_rewrite attncl__fused_attention_step_rewrite,
    attncl__fused_attention_step_rewrite_first;

#endif
