// SPDX-License-Identifier: MIT
// What linear_fwd (gemm.c), its gradients (gemm_bwd.c) and the fused linear maps (op/fused/fused_linear.c) share: inputs,
// outputs, the GEMM.
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

// Of linear_bwd_input and linear_bwd_weight: the product of the first two, plus the third.
enum linear_bwd_input { LINEAR_BWD_D, LINEAR_BWD_FACTOR, LINEAR_BWD_ADDEND, N_LINEAR_BWD_INPUTS };

// An input as a matrix of rows, and how many; an absent one is absent.
struct gemm_matrix attncl__linear_rows(const struct op_call *call, int input);
int64_t attncl__linear_row_count(const struct tensor_desc *d);

// Sizes and form, no operands.
struct gemm attncl__linear_gemm(const struct op_sig *sig);
// The same with operands and epilogue.
struct gemm attncl__linear_operands(const struct op_call *call,
                                    const struct linear_fwd_params *params);

#endif
