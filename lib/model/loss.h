// SPDX-License-Identifier: MIT
// The loss of a model that tells classes apart: cross entropy of its output with input "targets".
#ifndef ATTNCL_MODEL_LOSS_H
#define ATTNCL_MODEL_LOSS_H

#include "attncl/parameters.h"
#include "model/arch.h"

// Adds an architecture's computation for the inputs of `b`, "targets" among them, and its loss.
attncl_status attncl__loss_build(struct build *b, const struct arch_class *arch,
                                 const void *settings, const attncl_loss_desc *desc,
                                 attncl_value *loss_ret);

// attncl_model_loss(), whose arguments the caller has checked, and the scores of classes,
// [..., n_classes] for targets [...].
attncl_status attncl__model_scores_loss(attncl_model *model, attncl_graph *g,
                                        const attncl_loss_desc *desc, const attncl_array *inputs,
                                        size_t n, attncl_value *loss_ret, attncl_value *scores_ret);

#endif
