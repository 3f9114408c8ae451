// SPDX-License-Identifier: MIT
// The gradients of views of some elements of a value, collected until their sum is requested.
#ifndef ATTNCL_AUTODIFF_VIEW_GRADS_H
#define ATTNCL_AUTODIFF_VIEW_GRADS_H

#include "graph/nodes.h"

struct view_grad {
    struct tensor_desc view; // in elements of the base
    int64_t low, high;       // the range of elements it spans
    int value;
    int next;      // of the same base, -1: none
    int root;      // the base; -1: summed
    int next_hash; // in the same bucket, -1: none
};

struct view_grads {
    struct view_grad *list;
    int n;
    size_t capacity;
    int *buckets; // of `capacity` lists of view gradients with one hash
};

void attncl__view_grads_free(struct view_grads *v);

// Adds `gradient`, of a view of the value `root`, to the list that begins at *first; the gradients of
// equal views are summed immediately.
void attncl__view_grads_add(struct view_grads *v, attncl_graph *g, int root,
                            const struct tensor_desc *view, attncl_value gradient, int *first);

// The sum of the list that begins at `first` and of `whole`, the gradient of all elements (0: none):
// as many elements as `base`, contiguous.  The list is used up.  The null value when the graph fails.
attncl_value attncl__view_grads_sum(struct view_grads *v, attncl_graph *g, int first, int whole,
                                    const struct tensor_desc *base);

// a + b; `a`, a value's id, may be 0.
attncl_value attncl__grad_sum(attncl_graph *g, int a, attncl_value b);

#endif
