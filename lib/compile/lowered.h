// SPDX-License-Identifier: MIT
// A graph as the passes see it: nodes in execution order, values with their producer and consumers.
// A pass edits this copy only; the attncl_graph it comes from stays as it was built.
//
// Nodes and values keep their indices of the graph.  A fused node takes the index of one that it
// replaces, so indices remain execution order.
#ifndef ATTNCL_COMPILE_LOWERED_H
#define ATTNCL_COMPILE_LOWERED_H

#include "attncl/kinds.h"
#include "device/probe.h"
#include "graph/nodes.h"

// -- memory_plan.c: a pure function from lifetimes and sizes to offsets in the arena

// One block of memory, needed from step `first` to step `last`, both included.
struct plan_item {
    size_t bytes;
    int first, last;
    size_t offset; // result
    // The content, which the plan itself does not use.
    int value;            // 0: scratch
    int node;             // the value's producer, or the scratch's node
    size_t content_bytes; // `bytes` without alignment and canaries
};

// Gives every item an offset, a multiple of `align` (a power of two), so that items alive at the same
// step do not overlap; empty items get 0.  *arena_ret: bytes needed.  ERR_DEVICE_MEMORY when sizes
// overflow.
attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret);

// -- fit.c: fallbacks for ops whose kernels a device refuses or cannot build.  They are recorded again with smaller
// work-groups, and finally in the CPU variant with one work-item per work-group.

// Reduced capabilities by op class, and the caller's options.  Starts as zeros.
struct fit {
    attncl_precision precision;
    enum probe_mode probes;
    int n_queues; // 0: from the environment, default 1
    struct fitted_op *ops;
    int n;
};
void attncl__fit_free(struct fit *fit);

// Returns the class's reduced capabilities, else the device's.  `fit` may be NULL.
const struct device_caps *attncl__fit_get_caps(const struct fit *fit, const struct op_class *cls,
                                               const struct device_caps *device);

// Limits the class to the variant and work-group size of `limit`.
attncl_status attncl__fit_use(struct fit *fit, const struct op_class *cls,
                              const struct device_caps *limit);

struct refused_op {
    const struct op_class *cls;
    struct launch_refusal reason;
};

// Reduces the refused class's capabilities, if possible: then *retry_ret is true.  Returns `failure`.
attncl_status attncl__fit_reduce(struct fit *fit, const struct refused_op *refused,
                                 attncl_status failure, const struct device_caps *device,
                                 bool *retry_ret);

// -- lower.c, and the passes

// One input of one node, in the list of its value's consumers.
struct use {
    int node;
    bool writes;              // the input is state
    struct use *next, **link; // link: the pointer that points to this use
};

struct lowered_value {
    const struct value *origin;
    const struct tensor_desc *desc;
    int base;     // the value that owns the memory: itself, or a view's base
    int producer; // a node; -1: input, weight, constant, state or view
    // For a base: the uses of it and of its views.
    struct use *first_use;
    int n_uses, n_writes;
    bool is_output;
};

struct lowered_node {
    const struct op_class *cls;
    const void *params;
    const char *scope;
    int *inputs, *outputs; // values, cls->n_in and cls->n_out of them; 0: absent
    struct use *uses;      // by input
    int loop;              // -1: none
    bool save_for_backward;
    bool dead;
    int queue;
    int signal; // event slot that other queues wait for; -1: none waits
    size_t scratch_bytes;
};

// By queue: the last complete node, -1 if there is none.  Queues are in order, so earlier nodes are
// complete too.
struct progress {
    int node[MAX_QUEUES];
};

struct pool_block;

struct lowered {
    struct device_caps *caps; // the graph's; an op's: attncl__fit_get_caps()
    const struct fit *fit;
    struct refused_op refused;    // the op that made a pass fail
    bool canaries;                // around every value
    struct lowered_value *values; // [0] is the null value
    int n_values;
    struct lowered_node *nodes;
    int n_nodes;
    const struct loop *loops;
    const struct named_values *inputs, *outputs;

    // schedule.c
    int n_queues;
    struct progress *complete; // by node: what is complete when it begins; NULL with one queue
    struct progress *waits;    // by node: the nodes that its queue waits for before it
    struct progress end;       // the last node of each queue
    int n_signals;             // event slots of nodes

    // Results of the last passes.
    struct plan_item *items;
    size_t n_items;
    attncl_memory_report report;

    struct tensor_desc *descs; // memory of the current op_sig
    struct span *spans;        // arguments of the node being recorded
    struct pool_block *pool;   // attncl__lowered_alloc()
};

// Returns zeroed memory that lives as long as *p; NULL when memory is short.
void *attncl__lowered_alloc(struct lowered *p, size_t bytes);
void attncl__lowered_free(struct lowered *p); // a zeroed struct may be freed too

// Fills the signature of a node, or of a class with these inputs.  Valid until the next call.
void attncl__lowered_fill_sig(const struct lowered *p, const struct lowered_node *node,
                              struct op_sig *sig);
void attncl__lowered_fill_class_sig(const struct lowered *p, const struct op_class *cls,
                                    const int *inputs, struct op_sig *sig);

// Returns `status`, with "encoder.layers.0: linear_fwd" in front of a failure's message.
attncl_status attncl__lowered_prefix_failure(const struct lowered_node *node, attncl_status status);

// Turns node n into one of `cls`.  `params` must live as long as *p.  Output 0 stays, further ones are
// absent.
attncl_status attncl__lowered_replace(struct lowered *p, int n, const struct op_class *cls,
                                      const void *params, const int *inputs);
void attncl__lowered_remove(struct lowered *p, int n);

// Runs the passes that need no device memory.  `fit` may be NULL.
attncl_status attncl__plan(const attncl_graph *g, struct fit *fit, struct lowered *p);

// The passes, in order.  The caller frees *p, after a failure too.
attncl_status attncl__lower(const attncl_graph *g, const struct fit *fit, struct lowered *p);
void attncl__eliminate_dead(struct lowered *p);
// (attncl__apply_probes(), compile/probes.h)
attncl_status attncl__fuse(struct lowered *p);
attncl_status attncl__schedule(struct lowered *p);
attncl_status attncl__find_lifetimes(struct lowered *p);
// Returns the last node that may run before all `users` (the last ones on each queue) are complete.
int attncl__find_last_concurrent(const struct lowered *p, const struct progress *users);
// Returns the last node of the node's loop, or the node itself: a loop is scheduled as one unit.
int attncl__find_unit_end(const struct lowered *p, int node);
// (attncl__memory_plan() of the items)
struct program;
attncl_status attncl__allocate(const struct lowered *p, struct program *program);
attncl_status attncl__record(struct lowered *p, struct program *program);

#endif
