// SPDX-License-Identifier: MIT
// Shared by the layers.  A layer adds nodes to a graph; it never launches anything.
#ifndef ATTNCL_LAYER_LAYER_H
#define ATTNCL_LAYER_LAYER_H

#include <stdbool.h>

#include "graph/graph.h"

// Copies the shape of an input that must be there.  False when the graph has failed, or fails now
// because `v` is the null value: the builder then returns ATTNCL_NONE_VALUE.
bool attncl__layer_shape(attncl_graph *g, attncl_value v, const char *name,
                         struct tensor_desc *ret);

// attncl__layer_shape(), and fails the graph unless the value has `rank` axes; `axes` names them,
// "[T, B, C]".
bool attncl__layer_axes(attncl_graph *g, attncl_value v, const char *name, int rank,
                        const char *axes, struct tensor_desc *ret);

// A linear map under a scope of its own, `residual` (or null) added by the same kernel.
attncl_value attncl__layer_project(attncl_graph *g, const char *scope, attncl_value x,
                                   attncl_value weight, attncl_value bias, attncl_value residual);

static inline bool attncl__given(attncl_value v)
{
    return v.id != 0;
}

// Fills table [n_positions, n_channels] with sinusoids, each rounded once from double.
void attncl__sinusoid_fill(float *table, int64_t n_positions, int64_t n_channels);

#endif
