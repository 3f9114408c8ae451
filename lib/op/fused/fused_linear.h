// SPDX-License-Identifier: MIT
// fused_linear_fwd: inputs after those of linear_fwd, and where it runs.
#ifndef ATTNCL_OP_FUSED_LINEAR_H
#define ATTNCL_OP_FUSED_LINEAR_H

#include "op/matmul/linear.h"

enum fused_linear_input {
    FUSED_LINEAR_NORM_W = N_LINEAR_INPUTS, // [in]; norm weight and bias: both or none
    FUSED_LINEAR_NORM_B,
    FUSED_LINEAR_POSITION, // present: x is [B, H, parts, 2 + D], as steps of attention leave it
    FUSED_LINEAR_MORE,     // weight and bias of the other products: all weights or none
    N_FUSED_LINEAR_INPUTS = FUSED_LINEAR_MORE + 2 * GEMM_MAX_OTHERS
};

// Whether one launch on this device computes it, and in less time than several would.
bool attncl__fused_linear_supported(const struct op_sig *sig);

#endif
