// SPDX-License-Identifier: MIT
// Whether a call gives a model the inputs that its architecture names.
#ifndef ATTNCL_MODEL_INPUT_NAMES_H
#define ATTNCL_MODEL_INPUT_NAMES_H

#include "model/model.h"

// ERR_ARGUMENT when the inputs hold a name that the architecture does not know, a cotangent of no
// output, or lack inputs that must be there: the message names all of these, and the nearest of the
// names there are.
attncl_status attncl__input_names_check(const attncl_model *model, const attncl_array *inputs,
                                        size_t n);

// Whether an input is neither one of the graph's nor a cotangent.
bool attncl__input_names_left(const attncl_graph *g, const attncl_array *inputs, size_t n);

#endif
