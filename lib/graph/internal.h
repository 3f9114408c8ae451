// SPDX-License-Identifier: MIT
// What the files of graph/ share.
#ifndef ATTNCL_GRAPH_INTERNAL_H
#define ATTNCL_GRAPH_INTERNAL_H

#include "base/alloc.h"
#include "graph/nodes.h"

// Appends a value.  0: no memory, the graph has failed.
int attncl__graph_add_value(attncl_graph *g, struct value v);

#endif
