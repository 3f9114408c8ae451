// SPDX-License-Identifier: MIT
// What linear_fwd (gemm.c), its gradients (gemm_bwd.c) and the fused linear maps (op/fused/fused_linear.c) share: inputs,
// outputs, the GEMM; sums over rows; and what the ops of spatial gates share.
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

// Input `a`, or its transpose, times input `b`, per batch entry: output 0.
struct gemm attncl__bmm_gemm(const struct op_call *call, int a, int b, bool trans_a, bool trans_b);

// An op that is one GEMM, which `make` gives; where memory is planned, of a call without memory.
#define GEMM_OP(make)                                                                              \
    .gemm = (make), .scratch = attncl__gemm_op_scratch, .launch = attncl__gemm_op_launch
attncl_status attncl__gemm_op_scratch(const struct op_sig *sig, size_t *bytes_ret);
attncl_status attncl__gemm_op_launch(struct launcher *l, const struct op_call *call);

// -- column_sum.c: sums over rows, without atomics: blocks of rows first, then their sums (cl/matmul/column_sum.cl).
// The order depends on the shape alone.

enum { COLUMN_SUM_WIDTH = 64 }; // by which the kernels' work-groups are chosen

// y[a, c] = sum_r x[a, r, c]: x [batch, rows, width] contiguous, y [batch, width].
struct column_sum {
    int64_t batch, rows, width;
};

size_t attncl__column_sum_scratch(const struct column_sum *s); // bytes
// `scratch` may be absent when no bytes were asked for.  y must not be in it.
attncl_status attncl__launch_column_sum(struct launcher *l, const struct column_sum *s,
                                        struct span x, struct span y, struct span scratch);

// -- spatial_gate_bwd.c

// to[i, j] = from[i, j] where input `mask` and causality show it, else 0; i, j < `length` in both, `to` has n rows of n.
attncl_status attncl__spatial_gate_launch_mask(struct launcher *l, const struct op_call *call,
                                               int mask, int64_t length, struct gemm_matrix from,
                                               struct span to, int64_t n);

// The pairs of positions that a gate sums over: a causal one the lower triangle only.
double attncl__spatial_gate_pairs(const struct op_sig *sig);

#endif
