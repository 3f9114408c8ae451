// SPDX-License-Identifier: MIT
// fused_feedback_linear_fwd, for the compiler of graphs: inputs, and where it runs.
#ifndef ATTNCL_OP_FUSED_FEEDBACK_LINEAR_H
#define ATTNCL_OP_FUSED_FEEDBACK_LINEAR_H

#include "op/feedback/feedback_attention.h"
#include "op/fused/merging_linear.h"

// Those of feedback_attention_fwd up to the position, then those of linear_fwd without x.
enum {
    FEEDBACK_LINEAR_WEIGHT = FEEDBACK_POSITION + 1,
    FEEDBACK_LINEAR_BIAS,
    FEEDBACK_LINEAR_GATE,
    FEEDBACK_LINEAR_RESIDUAL,
    N_FEEDBACK_LINEAR_INPUTS
};

// Whether its kernels run on this device and are faster than a launch more.
bool attncl__feedback_linear_supported(const struct op_sig *sig);

#endif
