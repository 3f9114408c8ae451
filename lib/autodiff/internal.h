// SPDX-License-Identifier: MIT
// Internals of reverse mode: backward.c marks values and visits nodes, grad_node.c handles one node or
// region, grad_accum.c sums gradients.
#ifndef ATTNCL_AUTODIFF_INTERNAL_H
#define ATTNCL_AUTODIFF_INTERNAL_H

#include "base/alloc.h"
#include "graph/nodes.h"

// -- grad_accum.c

// The gradient of one value: a sum for all of it, and a list for views of parts of it.
struct grad_slot {
    int whole;           // value id, 0: none
    int first_view_grad; // head of the list; -1: empty
};

struct grad_accum {
    attncl_graph *g;
    int n_values; // when the backward pass began; later values get no gradient
    int *root; // by value: the one that holds its gradient, for views and several uses of a tensor
    struct grad_slot *slots; // by root
    struct view_grad *view_grads;
    int n_view_grads;
    size_t view_grads_capacity;
    int *buckets; // hash table of view_grads_capacity lists
};

// Free it after a failure (ERR_NO_MEMORY) too; a zeroed struct may be freed as well.
attncl_status attncl__grad_accum_begin(struct grad_accum *accum, attncl_graph *g);
void attncl__grad_accum_free(struct grad_accum *accum);

// Accumulates `gradient`, which has as many elements as `value`.  Gradients of whole values are added
// immediately, in the order of the calls.
void attncl__grad_accum_add(struct grad_accum *accum, int value, attncl_value gradient);

bool attncl__grad_accum_has(const struct grad_accum *accum, int value);

// The accumulated gradient of `value`'s base, in the base's shape; the null value when there is
// none or when the graph fails.
attncl_value attncl__grad_accum_get(struct grad_accum *accum, int value);

// -- backward.c, grad_node.c

struct backward {
    attncl_graph *g;
    int first, n_nodes; // the forward graph: nodes first to n_nodes - 1
    struct grad_accum accum;
    struct tensor_desc *descs; // memory for one op_sig
    bool *requires_grad;       // by root: an x, or depends on one
    bool *reaches_output;      // by root: a y, or a y depends on it
};

static inline bool attncl__backward_is_marked(const struct backward *b, const bool *marks,
                                              int value)
{
    return value != 0 && marks[b->accum.root[value]];
}

static inline bool attncl__backward_requires_grad(const struct backward *b, int value)
{
    return attncl__backward_is_marked(b, b->requires_grad, value);
}

bool attncl__backward_any_id(const struct backward *b, const bool *marks, int n, const int *ids);
bool attncl__backward_any_value(const struct backward *b, const bool *marks, int n,
                                const attncl_value *values);

// Fails the graph when node n lies between an x and a y and lacks a required gradient.
void attncl__backward_check(const struct backward *b, int n);

// Adds the gradients of the inputs of node n, or of a region, from those of its outputs.
void attncl__backward_node(struct backward *b, int n);
void attncl__backward_region(struct backward *b, const struct grad_region *region);

// Adds a zero gradient in the shape of `value`.
attncl_value attncl__backward_zeros(attncl_graph *g, int value);

#endif
