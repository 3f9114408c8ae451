// SPDX-License-Identifier: MIT
// A graph as the passes see it: nodes in execution order, values with their producer and consumers.
// A pass edits this copy only; the attncl_graph it comes from stays as it was built.
//
// Nodes and values have the indices that they have in the graph.  A fusion puts its nodes in the
// place of the ones it replaces, so that indices remain execution order.
#ifndef ATTNCL_COMPILE_LOWERED_H
#define ATTNCL_COMPILE_LOWERED_H

#include "attncl/kinds.h"
#include "device/probe.h"
#include "graph/nodes.h"

// -- memory_plan.c: where each value lives in one arena, a pure function of lifetimes and sizes

// One block of memory, needed from step `first` to step `last`, both included.
struct plan_item {
    size_t bytes;
    int first, last;
    size_t offset; // result
};

// Gives every item an offset, a multiple of `align` (a power of two), such that items alive at the
// same step do not overlap; zero-size items get offset 0.  *arena_ret is the space needed.
// ERR_DEVICE_MEMORY when sizes overflow.
attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret);

// -- fit.c: ops whose kernels a device refuses in the work-groups that its capabilities allow, or its compiler does not
// build. They are recorded again with smaller ones, in the end with the CPU variant's, of one work-item each.

// The capabilities of the classes that were lowered, and what the graph asks for.  Empty at first.
struct fit {
    attncl_precision precision;
    enum probe_mode probes;
    int n_queues; // 0: as the environment says, else 1
    struct fitted_op *ops;
    int n;
};
void attncl__fit_free(struct fit *fit);

// The device's own, where the class was not lowered.  fit: may be NULL, for none.
const struct device_caps *attncl__fit_caps(const struct fit *fit, const struct op_class *cls,
                                           const struct device_caps *device);

// From now on the class runs in the variant of `others` and in work-groups of their size at most.
attncl_status attncl__fit_use(struct fit *fit, const struct op_class *cls,
                              const struct device_caps *others);

// The class that could not be planned or recorded, and why not.
struct refused_op {
    const struct op_class *cls;
    struct launch_refusal reason;
};

// After `failure`, which is passed on.  *lowered_ret: whether there are smaller work-groups to try.
attncl_status attncl__fit_lower(struct fit *fit, const struct refused_op *refused,
                                attncl_status failure, const struct device_caps *device,
                                bool *lowered_ret);

// -- lowered.c, and the passes

// One input of one node, in the list of its value's consumers.
struct use {
    int node;
    bool writes;              // the input is state
    struct use *next, **link; // link: what points here
};

struct lowered_value {
    const struct value *origin;
    const struct tensor_desc *desc;
    int base;     // whose memory this is: itself, or a view's base
    int producer; // a node; -1: input, weight, constant, state or view
    // Of a base: every use of it and of its views.
    struct use *first_use;
    int n_uses, n_writes;
    bool is_output;
};

struct lowered_node {
    const struct op_class *cls;
    const void *params;
    const char *scope;
    int *inputs, *outputs; // cls->n_in, cls->n_out values, 0 for absent ones
    struct use *uses;      // of the inputs
    int loop;              // -1: none
    bool save_for_backward;
    bool dead;
    int queue;
    int signal; // event slot of its end, which other queues wait for; -1: none does
    size_t scratch_bytes;
};

// What an item of the memory plan holds.
struct placement {
    int value; // or 0
    int node;  // the value's producer, or the node whose scratch it is
    size_t bytes;
};

// The last node of each queue that is complete, -1: none.  Queues are in order, so the nodes before it
// are complete too.
struct progress {
    int node[MAX_QUEUES];
};

struct pool_block;

struct lowered {
    struct device_caps *caps; // of this graph; of an op: attncl__fit_caps()
    const struct fit *fit;
    struct refused_op refused; // which made a pass fail
    bool canaries;             // around every value
    struct lowered_value *values;
    int n_values; // [0] is the null value
    struct lowered_node *nodes;
    int n_nodes;
    const struct loop *loops;
    const struct named_values *inputs, *outputs;

    // The queues: see schedule.c.
    int n_queues;
    struct progress *begun; // of each node: what is complete when it begins; NULL: one queue
    struct progress *waits; // of each node: the nodes that its queue waits for before it
    struct progress end;    // the last node of each queue
    int n_signals;

    // Results of the last passes.
    struct placement *placements;
    struct plan_item *items; // of the placements
    size_t n_items;
    attncl_memory_report report;

    struct tensor_desc *descs; // of the last signature that was filled
    struct span *spans;        // of the node that is being recorded
    struct pool_block *pool;
};

// Zeroed memory that lives as long as the copy; NULL: none left.
void *attncl__lowered_alloc(struct lowered *p, size_t bytes);
void attncl__lowered_free(struct lowered *p); // a zeroed struct may be freed too

// Fills a node's signature, or that of a node of this class with these inputs.  Valid until the next
// one is filled.
void attncl__lowered_sig(const struct lowered *p, const struct lowered_node *node,
                         struct op_sig *sig);
void attncl__lowered_sig_of(const struct lowered *p, const struct op_class *cls, const int *inputs,
                            struct op_sig *sig);

// Passes `status` on, with "encoder.layers.0: linear_fwd" in front of a failure's message.
attncl_status attncl__lowered_prefix(const struct lowered_node *node, attncl_status status);

// Node n becomes one of `cls`.  params: from attncl__lowered_alloc().  Output 0 stays, the rest is
// absent.
attncl_status attncl__lowered_replace(struct lowered *p, int n, const struct op_class *cls,
                                      const void *params, const int *inputs);
void attncl__lowered_remove(struct lowered *p, int n);

// The passes before memory is allocated: what attncl_graph_memory() reports.  `fit` may be NULL.
attncl_status attncl__plan(const attncl_graph *g, struct fit *fit, struct lowered *p);

// The passes, in their order.  The copy is the caller's to free, in case of a failure too.
attncl_status attncl__lower(const attncl_graph *g, const struct fit *fit, struct lowered *p);
void attncl__eliminate_dead(struct lowered *p);
// attncl__apply_probes() (compile/probes.h)
attncl_status attncl__fuse(struct lowered *p);
attncl_status attncl__schedule(struct lowered *p);
attncl_status attncl__find_lifetimes(struct lowered *p);
// The last node that may run before node `last` and all other users of the item are complete; theirs
// are the last users on each queue.
int attncl__schedule_last(const struct lowered *p, const struct progress *users);
// The nodes of a node's loop, or itself: they go to one queue as one.
int attncl__unit_last(const struct lowered *p, int node);
// Then attncl__memory_plan() of the items; and with a device:
struct program;
attncl_status attncl__allocate(const struct lowered *p, struct program *program);
attncl_status attncl__record(struct lowered *p, struct program *program);

#endif
