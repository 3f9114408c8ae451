// SPDX-License-Identifier: MIT
// The internals of a graph, shared by the files of this directory only.
#ifndef ATTNCL_GRAPH_INTERNAL_H
#define ATTNCL_GRAPH_INTERNAL_H

#include "attncl/profile.h"
#include "device/context.h"
#include "graph/graph.h"
#include "launch/command_list.h"

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
    struct storage storage; // set by compile
    cl_mem canary_buffer;   // the storage is a sub-buffer of this when the graph has canaries
};

struct node {
    const struct op_class *cls;
    void *params;
    char *scope;
    int in[OP_MAX_IN]; // value ids, 0 for absent ones
    int out[OP_MAX_OUT];
    bool live;                 // something depends on it
    bool save_for_backward;    // a gradient reads its saved outputs
    struct as_built *as_built; // the graph before planning changed it
    size_t scratch_bytes;
    struct storage scratch;
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

// A named input or output, and the caller's buffer bound to it.
struct io_binding {
    char *name;
    int value;
    cl_mem bound;                // the caller's buffer, retained; NULL: the graph's own
    struct storage bound_buffer; // bound but not usable in place: the source or target of the copy
    size_t bound_offset;
    cl_mem own; // the graph's own buffer
};

// Where one value or scratch lies in the arena.
struct placement {
    int value; // or -1
    int node;  // of the scratch, or -1
    size_t bytes;
    size_t offset;
};

// With ATTNCL_GUARD a canary of this many constant bytes lies on both sides of every value and
// scratch.
enum { CANARY_BYTES = 1024 };
#define CANARY_WORD 0x7fc0deadu // a quiet NaN that arithmetic does not produce

enum { MAX_SCOPE_DEPTH = 32 };

struct profile; // exec/profile.c

struct attncl_graph {
    attncl_context *ctx;
    uint32_t serial;      // in every handle of its values; never 0
    attncl_status status; // first failure of the builders
    char message[512];

    struct value *values; // [0] is the null value
    int n_values, values_capacity;
    struct node *nodes;
    int n_nodes, nodes_capacity;
    struct loop *loops; // in the order of their nodes
    int n_loops, loops_capacity;
    bool in_loop;                // the last one has no end yet
    struct node_region *regions; // in the order of their nodes
    int n_regions, regions_capacity;
    int region_first; // of the region that has no end yet
    struct io_binding *inputs, *outputs;
    int n_inputs, n_outputs, inputs_capacity, outputs_capacity;

    char *scope; // "encoder.layers.0", "" at the top
    size_t scope_used, scope_capacity;
    size_t scope_marks[MAX_SCOPE_DEPTH]; // scope_used before each push
    int scope_depth;

    bool planned;
    bool changed; // planning merged or rewrote nodes
    struct placement *placements;
    size_t n_placements;
    attncl_memory_report report;

    bool compiled;
    bool canaries; // ATTNCL_GUARD
    cl_mem arena;
    cl_mem empty; // stands for values without elements
    struct command_list command_list;
    struct command_list copy_in, copy_out; // copies of bound buffers
    struct profile *profile;
};

// compile/liveness.c: marks live nodes, queries scratch sizes, plans the arena.
attncl_status attncl__graph_plan(attncl_graph *g);
void attncl__graph_sig(const attncl_graph *g, const struct node *node, struct op_sig *sig);
void attncl__graph_sig_inputs(const attncl_graph *g, const int in[OP_MAX_IN], struct op_sig *sig);
// compile/merge.c: makes one node of two where ops say that it suits, among live nodes.
attncl_status attncl__graph_merge(attncl_graph *g);
// Whether node n writes to what node `before` reads; how many inputs of a node are this value or a
// view of it, 0 where it is dead.
bool attncl__graph_overwrites(const attncl_graph *g, int n, const struct node *before);
int attncl__graph_count_reads(const attncl_graph *g, const struct node *node, int value);
// compile/rewrite.c: makes two nodes of a chain where an op's rule says so.
attncl_status attncl__graph_rewrite(attncl_graph *g);
// compile/as_built.c: before planning changes node n; node n, kept, becomes one of `cls`, which
// takes `params`; takes all of that back.
attncl_status attncl__graph_keep_as_built(attncl_graph *g, int n);
void attncl__graph_become(attncl_graph *g, int n, const struct op_class *cls, void *params,
                          const int in[OP_MAX_IN]);
void attncl__graph_restore(attncl_graph *g);
// compile/compile.c: back to the state before compile.
void attncl__graph_release(attncl_graph *g);
// graph/tensor.c
struct tensor_desc attncl__tensor_desc(const attncl_tensor *t);
struct storage *attncl__tensor_storage(attncl_tensor *t);
attncl_context *attncl__tensor_context(const attncl_tensor *t);
// graph/graph.c: puts "encoder.layers.0: linear_fwd" in front of the last error; true when the
// graph takes more nodes (else it has failed, or fails now); keeps the last error as the graph's
// first failure, the scope in front.
void attncl__graph_prefix(const struct node *node);
bool attncl__graph_building(attncl_graph *g);
attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status);
// graph/values.c: grows an array by at least one element (NULL: no memory); appends a value (0: no
// memory, the graph has failed); the value of a handle (NULL: none).
void *attncl__graph_grow(void *old, int used, int *capacity, size_t each);
int attncl__graph_add_value(attncl_graph *g, struct value v);
const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v);
// graph/loop.c: the loop a node is in, NULL when it is in none.
const struct loop *attncl__graph_loop_of(const attncl_graph *g, int node);
// graph/grad_region.c: the region a node is in, NULL when it is in none.
const struct node_region *attncl__graph_region_of(const attncl_graph *g, int node);
// exec/canary.c: fills everything the run will write with poison; checks the canaries.
attncl_status attncl__graph_poison(attncl_graph *g);
// exec/profile.c
void attncl__profile_free(struct profile *p);
// The index of the binding called `name`, -1 when there is none.
int attncl__io_binding_find(const struct io_binding *bindings, int n, const char *name);

#endif
