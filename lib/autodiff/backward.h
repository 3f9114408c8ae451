// SPDX-License-Identifier: MIT
// Reverse mode inside: backward.c marks values and visits nodes, grad_node.c handles one node or
// region.
#ifndef ATTNCL_AUTODIFF_BACKWARD_H
#define ATTNCL_AUTODIFF_BACKWARD_H

#include "autodiff/grad_accum.h"

struct backward {
    attncl_graph *g;
    int first, n_nodes; // of the forward graph: nodes first .. n_nodes - 1
    struct grad_accum accum;
    struct tensor_desc *descs; // of one signature
    bool *requires_grad;       // by root: an x, or depends on one
    bool *reaches_output;      // by root: a y, or one depends on it
};

static inline bool attncl__backward_requires_grad(const struct backward *b, int value)
{
    return value != 0 && b->requires_grad[b->accum.root[value]];
}

// Whether one of a node's inputs is an x or depends on one; whether one of its outputs is a y or a
// y depends on it.
bool attncl__backward_node_requires_grad(const struct backward *b, const struct node *node);
bool attncl__backward_node_reaches_output(const struct backward *b, const struct node *node);

// True when one of the values is marked.
bool attncl__backward_any(const struct backward *b, const bool *marks, int n,
                          const attncl_value *values);

// Fails the graph when node n lies between an x and a y and lacks a required gradient.
void attncl__backward_check(const struct backward *b, int n);

// Adds the gradients of the inputs of node n, or of a region, from those of its outputs.
void attncl__backward_node(struct backward *b, int n);
void attncl__backward_region(struct backward *b, const struct grad_region *region);

attncl_value attncl__backward_zeros(attncl_graph *g, int value); // like that value

#endif
