// SPDX-License-Identifier: MIT
// What linear_fwd (gemm.c), its gradients (gemm_bwd.c), and the fused linear maps (op/fused/fused_norm_linear.c,
// fused_qkv.c, merging_linear.c) share: inputs, outputs, the GEMM.
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

// fused_norm_linear_fwd has the norm's weight and bias besides, both [in].
enum { NORM_LINEAR_NORM_W = N_LINEAR_INPUTS, NORM_LINEAR_NORM_B, N_NORM_LINEAR_INPUTS };
// Whether its kernels run on this device and are faster than two launches.
bool attncl__norm_linear_supported(const struct op_sig *sig);

// fused_qkv_fwd: weights and biases of query, key and value.
enum qkv_input {
    QKV_X,
    QKV_WEIGHT,
    QKV_BIAS = QKV_WEIGHT + 3,
    QKV_NORM_W = QKV_BIAS + 3,
    QKV_NORM_B,
    N_QKV_INPUTS
};
// Whether its kernel runs on this device.
bool attncl__fused_qkv_supported(const struct op_sig *sig);

#endif
