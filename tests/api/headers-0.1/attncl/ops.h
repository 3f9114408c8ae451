// SPDX-License-Identifier: MIT
#ifndef ATTNCL_OPS_H
#define ATTNCL_OPS_H
#include "attncl/graph.h"
#include "attncl/kinds.h"
ATTNCL_BEGIN
ATTNCL_API attncl_value attncl_softmax(attncl_graph *g, attncl_value x, int axis);
ATTNCL_API attncl_value attncl_masked_softmax(attncl_graph *g, attncl_value x,
                                              attncl_value valid_lens);
ATTNCL_API attncl_value attncl_layer_norm(attncl_graph *g, attncl_value x, attncl_value weight,
                                          attncl_value bias, float eps);
ATTNCL_API attncl_value attncl_activate(attncl_graph *g, attncl_value x, attncl_activation kind);
ATTNCL_API attncl_value attncl_bias_activate(attncl_graph *g, attncl_value x, attncl_value bias,
                                             attncl_activation kind);
ATTNCL_API attncl_value attncl_add(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_mul(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_linear(attncl_graph *g, attncl_value x, attncl_value weight,
                                      attncl_value bias);
typedef struct attncl_linear_desc {
    size_t struct_size;
    attncl_activation activation;
    attncl_value gate;
    attncl_value residual;
} attncl_linear_desc;
#define ATTNCL_LINEAR_DESC_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_linear_desc), ATTNCL_IDENTITY, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT          \
    }
ATTNCL_API attncl_value attncl_linear_fused(attncl_graph *g, const attncl_linear_desc *desc,
                                            attncl_value x, attncl_value weight, attncl_value bias);
ATTNCL_API attncl_value attncl_bmm(attncl_graph *g, attncl_value a, attncl_value b);
ATTNCL_API attncl_value attncl_embedding(attncl_graph *g, attncl_value tokens, attncl_value weight,
                                         float scale);
ATTNCL_API attncl_value attncl_sinusoid(attncl_graph *g, int64_t n_positions, int64_t n_channels);
ATTNCL_API attncl_value attncl_add_positions(attncl_graph *g, attncl_value x, attncl_value table,
                                             attncl_layout layout);
ATTNCL_API attncl_value attncl_add_position_at(attncl_graph *g, attncl_value x, attncl_value table,
                                               attncl_value position);
ATTNCL_API attncl_value attncl_relative_shift(attncl_graph *g, attncl_value x, double delta);
ATTNCL_API attncl_value attncl_cross_entropy(attncl_graph *g, attncl_value logits,
                                             attncl_value targets, attncl_reduction reduction,
                                             int64_t pad);
ATTNCL_API attncl_value attncl_argmax(attncl_graph *g, attncl_value x);
ATTNCL_API attncl_value attncl_concat(attncl_graph *g, size_t n, const attncl_value *values,
                                      int axis);
ATTNCL_API attncl_value attncl_reshape(attncl_graph *g, attncl_value x, int rank,
                                       const int64_t *dim);
ATTNCL_API attncl_value attncl_slice(attncl_graph *g, attncl_value x, int axis, int64_t begin,
                                     int64_t end);
ATTNCL_API attncl_value attncl_permute(attncl_graph *g, attncl_value x, const int *order);
ATTNCL_END
#endif
