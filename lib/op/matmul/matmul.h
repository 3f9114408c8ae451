// SPDX-License-Identifier: MIT
// Shared by linear_fwd (gemm.c), its gradients (gemm_bwd.c) and fused linear maps
// (op/fused/fused_linear.c); sums over rows; shared by the spatial gate's ops.
#ifndef ATTNCL_OP_MATMUL_MATMUL_H
#define ATTNCL_OP_MATMUL_MATMUL_H

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

// Inputs of linear_bwd_input and linear_bwd_weight: the product of the first two, plus the third.
enum linear_bwd_input { LINEAR_BWD_D, LINEAR_BWD_FACTOR, LINEAR_BWD_ADDEND, N_LINEAR_BWD_INPUTS };

// An input as a matrix of rows, absent if the input is; and the number of rows.
struct gemm_matrix attncl__linear_rows(const struct op_call *call, int input);
int64_t attncl__linear_row_count(const struct tensor_desc *d);

// A linear map's GEMM without operands; with operands and epilogue.
struct gemm attncl__linear_gemm(const struct op_sig *sig);
struct gemm attncl__linear_operands(const struct op_call *call,
                                    const struct linear_fwd_params *params);

// Per batch entry: output 0 = input a times input b; N is as it is, T transposed.
enum bmm_form { BMM_NN, BMM_NT, BMM_TN };
struct gemm attncl__bmm_gemm(const struct op_call *call, int a, int b, enum bmm_form form);

// Class fields of an op that is one GEMM, described by `make`.  While memory is planned, `make` is
// called without memory.
#define GEMM_OP(make)                                                                              \
    .gemm = (make), .scratch = attncl__gemm_op_scratch, .launch = attncl__gemm_op_launch
attncl_status attncl__gemm_op_scratch(const struct op_sig *sig, size_t *bytes_ret);
attncl_status attncl__gemm_op_launch(struct launcher *l, const struct op_call *call);

// -- column_sum.c: sums over rows without atomics, blocks of rows first, in an order that depends
// only on the shape (cl/matmul/column_sum.cl)

enum { COLUMN_SUM_WIDTH = 64 }; // width that determines the work-group size

// y[a, c] = sum_r x[a, r, c]: x [batch, rows, width] contiguous, y [batch, width].
struct column_sum {
    int64_t batch, rows, width;
};

size_t attncl__column_sum_scratch(const struct column_sum *s); // bytes
// `scratch` may be absent if its size is 0.  y must not be in it.
attncl_status attncl__launch_column_sum(struct launcher *l, const struct column_sum *s,
                                        struct span x, struct span y, struct span scratch);

// -- spatial_gate_bwd.c

// to[i, j] = from[i, j] where i, j < length and it is visible (input `mask`, causality), else 0.  `to`
// is [n, n].
attncl_status attncl__spatial_gate_launch_mask(struct launcher *l, const struct op_call *call,
                                               int mask, int64_t length, struct gemm_matrix from,
                                               struct span to, int64_t n);

// The pairs of positions that a gate sums over: a causal one the lower triangle only.
double attncl__spatial_gate_pairs(const struct op_sig *sig);

#endif
