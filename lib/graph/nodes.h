// SPDX-License-Identifier: MIT
// What a graph consists of: values, nodes, loops and regions.  Written by graph/ only; read by
// gradients (autodiff/) and when a graph is lowered (compile/lower.c).
#ifndef ATTNCL_GRAPH_NODES_H
#define ATTNCL_GRAPH_NODES_H

#include "base/name_table.h"
#include "base/strbuf.h"
#include "device/context.h"
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
    struct tensor_desc desc;
    enum value_kind kind;
    int base;         // whose memory this is: itself, or a view's base
    int node;         // RESULT: its producer
    bool owns_tensor; // constants
    bool is_output;
    char *name;            // INPUT, STATE
    attncl_tensor *tensor; // TENSOR
};

struct node {
    const struct op_class *cls;
    void *params;           // the node's allocation, with `in` and `out` after them
    char *scope;            // of the graph's list
    int *in, *out;          // cls->n_in and cls->n_out value ids, 0 for absent ones
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
    bool ranged; // an input's elements must lie in [low, high)
    int64_t low, high;
};

// The inputs or the outputs.
struct named_values {
    struct named_value *list;
    int n;
    size_t capacity;
    struct name_table names; // of their places in the list
};

enum { MAX_SCOPE_DEPTH = 32 };

struct program; // compile/program.h

struct attncl_graph {
    attncl_context *ctx;
    uint32_t serial;      // in every handle of its values; never 0
    attncl_status status; // first failure of the builders
    char message[512];

    struct value *values; // [0] is the null value
    int n_values;
    size_t values_capacity;
    struct node *nodes;
    int n_nodes;
    size_t nodes_capacity;
    struct tensor_desc *descs; // of the node that is being added
    int descs_capacity;
    struct loop *loops; // in the order of their nodes
    int n_loops;
    size_t loops_capacity;
    bool in_loop;                // the last one has no end yet
    struct node_region *regions; // in the order of their nodes
    int n_regions;
    size_t regions_capacity;
    int region_first; // of the region that has no end yet
    struct named_values inputs, outputs;

    struct strbuf scope; // "encoder.layers.0", "" at the top
    char **node_scopes;  // copies for the nodes; neighbours share one
    size_t n_node_scopes, node_scopes_capacity;
    size_t scope_marks[MAX_SCOPE_DEPTH]; // its length before each push
    int scope_depth;
    const char *scope_override; // of the nodes that are being added; NULL: `scope`

    bool canaries;                   // ATTNCL_GUARD
    const attncl_graph *state_owner; // whose state it uses; NULL: none's.  Borrowed until compiled
    struct program *program;         // NULL: not compiled
    void (*program_free)(struct program *program);
};

// Appends a value; for graph/.  0: no memory, the graph has failed.
int attncl__graph_add_value(attncl_graph *g, struct value v);

// The value of a handle; NULL: none.
const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v);

// Sorts pointers to values (qsort()): uses of one tensor are neighbours, in their order.
int attncl__by_tensor(const void *a, const void *b);

// A node's signature.  descs: for its inputs and outputs.
void attncl__graph_sig(const attncl_graph *g, const struct node *node, struct tensor_desc *descs,
                       struct op_sig *sig);

// True when the graph takes more nodes; else it has failed, or fails now.
bool attncl__graph_building(attncl_graph *g);

// From now on nodes are added under this scope, a node's; NULL: the builder's again.
void attncl__graph_override_scope(attncl_graph *g, const char *scope);

// Describes the outputs of node n that a gradient reads, and has the node write them.
void attncl__graph_save_for_backward(attncl_graph *g, int n);

// A device tensor's shape, memory and context.
struct storage;
struct storage *attncl__tensor_storage(attncl_tensor *t);
attncl_context *attncl__tensor_context(const attncl_tensor *t);

#endif
