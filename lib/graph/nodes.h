// SPDX-License-Identifier: MIT
// What a graph consists of: values, nodes, loops and regions.  Written by graph/ only; read by
// gradients (autodiff/) and when a graph is lowered (compile/lower.c).
#ifndef ATTNCL_GRAPH_NODES_H
#define ATTNCL_GRAPH_NODES_H

#include "graph/graph.h"

enum value_kind {
    VALUE_NONE,
    VALUE_INPUT,
    VALUE_TENSOR, // a caller's weight or a constant of this graph
    VALUE_STATE,
    VALUE_RESULT, // computed by a node
    VALUE_VIEW,   // another value's memory
};

struct value {
    enum value_kind kind;
    struct tensor_desc desc;
    int base;              // whose memory this is: itself, or a view's base
    int node;              // RESULT: its producer
    char *name;            // INPUT, STATE
    attncl_tensor *tensor; // TENSOR
    bool owns_tensor;      // constants
    bool ranged;           // INPUT: elements must lie in [low, high)
    int64_t low, high;
    bool is_output;
};

struct node {
    const struct op_class *cls;
    void *params;
    char *scope;
    int *in, *out;          // cls->n_in and cls->n_out value ids in one array, 0 for absent ones
    int loop, region;       // the one it is in, -1: none
    bool save_for_backward; // a gradient reads its saved outputs
};

// Nodes first .. last, executed trip_count times.
struct loop {
    int first, last;
    int64_t trip_count;
};

// Nodes first .. last, differentiated as one.
struct node_region {
    int first, last;
    struct grad_region *grad; // owned
};

// An input or an output.
struct named_value {
    char *name;
    int value;
};

// A device tensor's shape, memory and context.
struct storage;
struct tensor_desc attncl__tensor_desc(const attncl_tensor *t);
struct storage *attncl__tensor_storage(attncl_tensor *t);
attncl_context *attncl__tensor_context(const attncl_tensor *t);

#endif
