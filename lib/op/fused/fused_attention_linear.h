// SPDX-License-Identifier: MIT
// fused_attention_linear_fwd, for the compiler of graphs: inputs, and where it runs.
#ifndef ATTNCL_OP_FUSED_ATTENTION_LINEAR_H
#define ATTNCL_OP_FUSED_ATTENTION_LINEAR_H

#include "op/attention/attention_step.h"
#include "op/fused/merging_linear.h"

// Those of attention_step_fwd, then those of linear_fwd without x.
enum {
    ATTENTION_LINEAR_WEIGHT = N_STEP_INPUTS,
    ATTENTION_LINEAR_BIAS,
    ATTENTION_LINEAR_GATE,
    ATTENTION_LINEAR_RESIDUAL,
    N_ATTENTION_LINEAR_INPUTS
};

// Whether its kernels run on this device and are faster than a launch more.
bool attncl__attention_linear_supported(const struct op_sig *sig,
                                        const struct attention_step_fwd_params *step);

#endif
