// SPDX-License-Identifier: MIT
// The contents of a graph: values, nodes, loops and regions.  Written by graph/ only; read by
// autodiff/ and by compile/lower.c.
#ifndef ATTNCL_GRAPH_NODES_H
#define ATTNCL_GRAPH_NODES_H

#include "base/name_table.h"
#include "base/strbuf.h"
#include "device/context.h"
#include "graph/graph.h"

enum value_kind {
    VALUE_NONE,
    VALUE_INPUT,
    VALUE_TENSOR, // a caller's weight, or a constant of this graph
    VALUE_STATE,
    VALUE_RESULT, // computed by a node
    VALUE_VIEW,   // another value's memory
};

struct value {
    struct tensor_desc desc;
    enum value_kind kind;
    int base;         // the value that owns the memory: itself, or a view's base
    int node;         // RESULT: its producer
    bool owns_tensor; // true for constants
    bool is_output;
    char *name;            // INPUT, STATE
    attncl_tensor *tensor; // TENSOR
};

struct node {
    const struct op_class *cls;
    void *params;           // one allocation, followed by `in` and `out`
    char *scope;            // borrowed from node_scopes
    int *in, *out;          // ids of values, cls->n_in and cls->n_out of them; 0: absent
    int loop, region;       // indices; -1: in none
    bool save_for_backward; // a gradient reads its saved outputs
};

// Nodes first to last, executed trip_count times.
struct loop {
    int first, last;
    int64_t trip_count;
};

// Nodes first to last, differentiated as one.
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
    struct name_table names; // to indices of the list
};

enum { MAX_SCOPE_DEPTH = 32 };

struct program; // compile/program.h

struct attncl_graph {
    attncl_context *ctx;
    uint32_t serial;      // stored in every handle of its values; never 0
    attncl_status status; // first failure of the builders
    char message[512];

    struct value *values; // [0] is the null value
    int n_values;
    size_t values_capacity;
    struct node *nodes;
    int n_nodes;
    size_t nodes_capacity;
    struct tensor_desc *descs; // memory for the signature of the node being added
    struct loop *loops;        // in execution order
    int n_loops;
    size_t loops_capacity;
    bool in_loop;                // the last loop is still open
    struct node_region *regions; // in execution order
    int n_regions;
    size_t regions_capacity;
    int region_first; // first node of the open region
    struct named_values inputs, outputs;

    struct strbuf scope; // "encoder.layers.0", "" at the top
    char **node_scopes;  // copies for nodes; consecutive nodes share one
    size_t n_node_scopes, node_scopes_capacity;
    size_t scope_marks[MAX_SCOPE_DEPTH]; // the scope's length before each push
    int scope_depth;
    const char *scope_override; // scope of the nodes being added; NULL: `scope`

    bool canaries;                   // ATTNCL_GUARD
    const attncl_graph *state_owner; // shares its state, borrowed until compiled; NULL: no sharing
    struct program *program;         // NULL: not compiled
    void (*program_free)(struct program *program);
};

// Appends a value and returns its id; 0 when memory is short: the graph has failed.
int attncl__graph_add_value(attncl_graph *g, struct value v);

// Returns the handle's value; NULL for the null value or another graph's.
const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v);

// Compares pointers to values, for qsort(): uses of one tensor become neighbours, in order of creation.
int attncl__compare_by_tensor(const void *a, const void *b);

// Returns the largest number of inputs and outputs that an op has.
size_t attncl__op_max_arity(void);

// Fills the node's signature, whose descriptions are stored in `descs`.
void attncl__graph_fill_sig(const attncl_graph *g, const struct node *node,
                            struct tensor_desc *descs, struct op_sig *sig);

// True when the graph accepts more nodes.  A compiled graph fails now.
bool attncl__graph_check_open(attncl_graph *g);

// Adds further nodes under this scope, borrowed from a node; NULL restores the builder's scope.
void attncl__graph_override_scope(attncl_graph *g, const char *scope);

// Makes node n write the outputs that only gradients read.
void attncl__graph_save_for_backward(attncl_graph *g, int n);

struct storage;
struct storage *attncl__tensor_storage(attncl_tensor *t);
attncl_context *attncl__tensor_context(const attncl_tensor *t);

#endif
