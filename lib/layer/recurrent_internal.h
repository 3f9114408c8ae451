// SPDX-License-Identifier: MIT
// What the attention decoder (bahdanau.c) has of the recurrent layers (recurrent.c).
#ifndef ATTNCL_LAYER_RECURRENT_INTERNAL_H
#define ATTNCL_LAYER_RECURRENT_INTERNAL_H

#include "attncl/recurrent.h"
#include "layer/layer.h"

// Index `at` of an axis of a value of three, as a view of two.
attncl_value attncl__layer_row(attncl_graph *g, attncl_value x, int axis, int64_t at);
// [B, C] as [1, B, C], or [B, 1, C]: the memory layout is the same either way.
attncl_value attncl__layer_step_axis(attncl_graph *g, attncl_value x, const char *name, int axis);

// A step, from the projected input xi [B, 3 H].
attncl_value attncl__gru_cell(attncl_graph *g, const attncl_gru_params *params, attncl_value xi,
                              attncl_value h);

// The layers, copied; owned by the caller.  NULL: the graph has failed.
attncl_gru_params *attncl__gru_layers_read(attncl_graph *g, const attncl_gru_params *layers,
                                           size_t n_layers, const attncl_value *states);
// The scope of layer k, for the caller to pop.
void attncl__gru_layer_push(attncl_graph *g, size_t k);

#endif
