// SPDX-License-Identifier: MIT
// Inputs of feedback_attention_fwd.
#ifndef ATTNCL_OP_FEEDBACK_ATTENTION_H
#define ATTNCL_OP_FEEDBACK_ATTENTION_H

enum feedback_attention_input {
    FEEDBACK_Q,
    FEEDBACK_KEYS,
    FEEDBACK_VALUES,
    FEEDBACK_PLACES,
    FEEDBACK_U,
    FEEDBACK_PLACE_BIAS,
    FEEDBACK_POSITION,
    FEEDBACK_DCACHE, // for the backward pass alone, as the step of dropout is for training
    FEEDBACK_STEP
};

#endif
