// SPDX-License-Identifier: MIT
// What feedback_attention_fwd shares with fused_feedback_linear_fwd, whose first inputs are the same.
#ifndef ATTNCL_OP_FEEDBACK_ATTENTION_H
#define ATTNCL_OP_FEEDBACK_ATTENTION_H

#include "op/attention/attention_split.h"
#include "op/op.h"

enum feedback_attention_input {
    FEEDBACK_Q,
    FEEDBACK_KEYS,
    FEEDBACK_VALUES,
    FEEDBACK_PLACES,
    FEEDBACK_U,
    FEEDBACK_PLACE_BIAS,
    FEEDBACK_POSITION,
    FEEDBACK_DCACHE, // for the backward pass alone, as the step of dropout is for training
    FEEDBACK_STEP,
    N_FEEDBACK_INPUTS
};

// A step in parts, in the GPU variant; y is the caller's to set.
struct attention_split attncl__feedback_attention_split(const struct op_call *call);
// The parts' bytes; 0 in the CPU variant.
attncl_status attncl__feedback_attention_scratch(const struct op_sig *sig, size_t *bytes_ret);

#endif
