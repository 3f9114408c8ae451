// SPDX-License-Identifier: MIT
// What training changes of a model: the tensors that are no buffers, and their gradients in a graph.
#ifndef ATTNCL_MODEL_TRAINED_H
#define ATTNCL_MODEL_TRAINED_H

#include "model/param_table.h"

size_t attncl__trained_count(const struct param_table *t);
// The i-th of them; NULL beyond the last.
const struct param *attncl__trained_at(const struct param_table *t, size_t i);

// Adds their values and the gradients of `loss`, attncl__trained_count() of each.
attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients);

#endif
