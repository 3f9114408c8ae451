// SPDX-License-Identifier: MIT
/**
 * @file attncl/gradient.h
 * Gradients: nodes that compute them are added to the same graph, before it is compiled.
 *
 *     attncl_value loss = attncl_cross_entropy(g, logits, targets, NULL);
 *     attncl_value gradients[2];
 *     attncl_graph_gradient(g, 1, &loss, NULL, 2, weights, gradients);
 *     attncl_graph_output(g, "grad", gradients[0]);
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_GRADIENT_H
#define ATTNCL_GRADIENT_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/**
 * Adds the gradients of sum_i sum(y_i * dy_i) with respect to each x, in reverse mode.
 *
 * @param dy  n_y values, each of the shape of its y; NULL, or a null value among them: 1, which a y
 *            of one element may have
 * @param x   n_x values of the graph: inputs, weights, results.  The gradient of a view is that of
 *            the elements it shows
 * @param dx  receives n_x values, each of the shape of its x: zeros if no y depends on it; null
 *            values once the graph has failed
 *
 * Only gradients that lead to an x are computed.  The memory plan keeps the forward values that they
 * read.  Sums have a fixed order: every run gives the same bits.
 *
 * NaN and infinity, in inputs or in dy, propagate as the gradients' formulas say (IEEE 754), as in
 * PyTorch, and reach no other elements; nothing is reported.  Sums with infinite terms, as in layer
 * norm, attention, AFT and recurrent layers, are NaN or infinite.  In particular:
 *  - ReLU: where its argument is not above 0, dy has no effect; where it is NaN, dy passes.
 *  - GELU and SiLU at an infinite argument have their slope's limit, 1 or 0 (PyTorch: NaN).
 *  - Cross entropy: a position that is padding has 0, whatever its logits (PyTorch: NaN of NaN).
 *  - Softmax: a row of -inf has 0 (PyTorch: NaN).
 *  - Layer norm: a row with NaN or infinity in x, weight or dy has no finite element in its dx.
 *  - Attention, additive attention and AFT: NaN in a query or in a key it sees reaches the gradients
 *    of that query and of all keys and values it sees, and may reach those of others.
 *  - attncl_attention_pooling(): a key at infinity has no weight, and 0.
 *
 * Fails the graph with ATTNCL_ERR_UNSUPPORTED, naming the op, when an op between an x and a y has
 * no gradient; with ATTNCL_ERR_SHAPE or ATTNCL_ERR_DTYPE when a dy does not fit or a value is not
 * F32.
 * Errors: ERR_UNSUPPORTED, ERR_SHAPE, ERR_DTYPE, ERR_ARGUMENT, kept by the graph.
 */
ATTNCL_API void attncl_graph_gradient(attncl_graph *g, size_t n_y, const attncl_value *y,
                                      const attncl_value *dy, size_t n_x, const attncl_value *x,
                                      attncl_value *dx);

ATTNCL_END

#endif
