// SPDX-License-Identifier: MIT
// What attention_step_fwd shares with fused_attention_linear_fwd, whose first inputs are the same.
#ifndef ATTNCL_OP_ATTENTION_STEP_H
#define ATTNCL_OP_ATTENTION_STEP_H

#include "op/attention/attention_split.h"
#include "op/op.h"

enum attention_step_input {
    STEP_Q,
    STEP_K,
    STEP_V,
    STEP_POSITION,
    STEP_KEYS,
    STEP_VALUES,
    N_STEP_INPUTS
};

// The step in parts, in the GPU variant; y is the caller's to set.
struct attention_split attncl__attention_step_split(const struct op_call *call,
                                                    const struct attention_step_fwd_params *params);
// The parts' bytes; 0 in the CPU variant.
attncl_status attncl__attention_step_scratch(const struct op_sig *sig,
                                             const struct attention_step_fwd_params *params,
                                             size_t *bytes_ret);

#endif
