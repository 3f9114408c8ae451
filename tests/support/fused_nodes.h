// SPDX-License-Identifier: MIT
// What fusion makes of a graph.
#ifndef ATTNCL_TEST_FUSED_NODES_H
#define ATTNCL_TEST_FUSED_NODES_H

#include "attncl/attncl.h"
#include "op/fused/fused.h"

// Live nodes of this class once the graph is lowered and fused.
int count_fused(const attncl_graph *g, const struct op_class *cls);
// Fused linear maps among them that have this input: FUSED_LINEAR_NORM_W, _POSITION or _MORE.
int count_maps(const attncl_graph *g, enum fused_linear_input input);

#endif
