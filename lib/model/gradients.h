// SPDX-License-Identifier: MIT
// Gradients of a model: inputs called cotangent.OUTPUT ask for outputs called grad.NAME.
#ifndef ATTNCL_MODEL_GRADIENTS_H
#define ATTNCL_MODEL_GRADIENTS_H

#include "model/arch.h"

// The output that an input of this name is the cotangent of; NULL: none.
const char *attncl__gradients_output(const char *name);

// True when the inputs ask for gradients.
bool attncl__gradients_asked(const attncl_array *inputs, size_t n);

// ERR_UNSUPPORTED when they ask for those of an architecture that has none.
attncl_status attncl__gradients_check(const struct arch_class *arch, const attncl_array *inputs,
                                      size_t n);

// Adds to the built graph an input for each cotangent, which must have the shape of its output, and
// an output for each float input and trainable parameter.
attncl_status attncl__gradients_build(struct build *b, const struct arch_class *arch);

#endif
