// SPDX-License-Identifier: MIT
// What fusion makes of a graph.
#ifndef ATTNCL_TEST_FUSED_NODES_H
#define ATTNCL_TEST_FUSED_NODES_H

#include "attncl/attncl.h"
#include "op/op.h"

// Live nodes of this class once the graph is lowered and fused.
int count_fused(const attncl_graph *g, const struct op_class *cls);

#endif
