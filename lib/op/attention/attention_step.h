// SPDX-License-Identifier: MIT
// Inputs of attention_step_fwd.
#ifndef ATTNCL_OP_ATTENTION_STEP_H
#define ATTNCL_OP_ATTENTION_STEP_H

enum attention_step_input { STEP_Q, STEP_K, STEP_V, STEP_POSITION, STEP_KEYS, STEP_VALUES };

#endif
