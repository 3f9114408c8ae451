// SPDX-License-Identifier: MIT
// One key and value map for all layers of a feedback transformer.
#ifndef ATTNCL_LAYER_FEEDBACK_STACK_H
#define ATTNCL_LAYER_FEEDBACK_STACK_H

#include "layer/feedback_internal.h"

// Sets key_value_weight and key_value_bias from the layers' own maps, [width, width] each.
void attncl__feedback_stack(attncl_graph *g, struct feedback_model *model, int64_t width);

#endif
