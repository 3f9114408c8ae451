// SPDX-License-Identifier: MIT
// Reverse mode inside: backward.c marks and walks, backward_step.c takes one node or block.
#ifndef ATTNCL_GRAPH_BACKWARD_H
#define ATTNCL_GRAPH_BACKWARD_H

#include "graph/arrivals.h"

struct backward {
    attncl_graph *g;
    int first, n_nodes; // of the forward graph: nodes first .. n_nodes - 1
    struct arrivals a;
    bool *wanted;  // by root: an x, or depends on one
    bool *reached; // by root: a y, or one depends on it
};

static inline bool attncl__backward_wants(const struct backward *b, int value)
{
    return value != 0 && b->wanted[b->a.root[value]];
}

// Whether an x, or what depends on one, is among a node's inputs; a y, or what one depends on,
// among its outputs.
bool attncl__backward_wants_node(const struct backward *b, const struct node *node);
bool attncl__backward_reaches_node(const struct backward *b, const struct node *node);

// True when one of the values is marked.
bool attncl__backward_any(const struct backward *b, const bool *marks, int n,
                          const attncl_value *values);

// Fails the graph when node n lies between an x and a y and lacks a gradient that is wanted.
void attncl__backward_check(const struct backward *b, int n);

// The gradients of what node n, or a block, read from those of what it made.
void attncl__backward_node(struct backward *b, int n);
void attncl__backward_block(struct backward *b, const struct graph_block *block);

attncl_value attncl__backward_zeros(attncl_graph *g, int value); // like that value

#endif
