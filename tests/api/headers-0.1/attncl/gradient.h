// SPDX-License-Identifier: MIT
#ifndef ATTNCL_GRADIENT_H
#define ATTNCL_GRADIENT_H
#include "attncl/graph.h"
ATTNCL_BEGIN
ATTNCL_API void attncl_graph_gradient(attncl_graph *g, size_t n_y, const attncl_value *y,
                                      const attncl_value *dy, size_t n_x, const attncl_value *x,
                                      attncl_value *dx);
ATTNCL_END
#endif
