// SPDX-License-Identifier: MIT
// A graph inside: values, nodes, and what layers call to add them.
#ifndef ATTNCL_GRAPH_GRAPH_H
#define ATTNCL_GRAPH_GRAPH_H

#include "attncl/graph.h"
#include "op/op.h"

// Adds one op.  `in` has n_in of the class's inputs, null values for absent ones (missing trailing
// ones count as absent).  `params` is copied.  Returns output 0; further outputs through
// attncl__graph_result().
attncl_value attncl__graph_add(attncl_graph *g, const struct op_class *cls, const void *params,
                               const attncl_value *in, int n_in);
#define IN(...)                                                                                    \
    (const attncl_value[]){__VA_ARGS__},                                                           \
        (int)(sizeof((const attncl_value[]){__VA_ARGS__}) / sizeof(attncl_value))

// Output `i` of the node that made `first`.
attncl_value attncl__graph_result(attncl_graph *g, attncl_value first, int i);

// A view of `base`: same memory, other extents and strides (desc->start counts from base's own
// start).
attncl_value attncl__graph_view(attncl_graph *g, attncl_value base, const struct tensor_desc *desc);

// The value's shape; NULL for the null value.  Valid until the next node is added.
const struct tensor_desc *attncl__graph_desc(const attncl_graph *g, attncl_value v);

// F32 zeros.
attncl_value attncl__graph_zeros(attncl_graph *g, int rank, const int64_t *dim);

// What is added until the matching end is done `n_rounds` times in each run, round after round.
// Returns the round's number, I32 [1], counted from 0.  A value made inside and used behind the
// loop is the last round's; what rounds hand on is state (a stack of rows: loop_stack_fwd).  Loops
// do not nest.
attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t n_rounds);
void attncl__graph_loop_end(attncl_graph *g);

// The same, and rounds are numbered from n_rounds - 1 down to 0.
attncl_value attncl__graph_loop_begin_back(attncl_graph *g, int64_t n_rounds);

// Nodes whose gradients are not those of each node by itself, such as a loop's: what they read and
// made, and how to go back through all of them.  `in` and `out` are the block's: one allocation
// with `context` behind it, the graph's from attncl__graph_block_end() on.
struct graph_block {
    int n_in, n_out;
    attncl_value *in, *out;
    const void *context;
    // Adds the nodes that make dx[i], the gradient of in[i], where wanted[i]; of another it may
    // stay null.  dy[i] is null where nothing flows.  A failure is the graph's.
    void (*backward)(attncl_graph *g, const struct graph_block *block, const attncl_value *dy,
                     const bool *wanted, attncl_value *dx);
};

// An empty block with room for n_in, n_out and context_bytes, copied from `context`; NULL: the
// graph has failed.
struct graph_block *attncl__graph_block_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes);
// The block is the nodes since its beginning; it becomes the graph's.  Blocks do not nest.
void attncl__graph_block_end(attncl_graph *g, struct graph_block *block);

// Fails the graph from a builder and returns the null value: GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "k has
// ...").
attncl_value attncl__graph_fail(attncl_graph *g, attncl_status status, const char *file, int line,
                                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define GRAPH_FAIL(g, status, ...)                                                                 \
    attncl__graph_fail((g), (status), __FILE__, __LINE__, __VA_ARGS__)

// True once a builder has failed.
bool attncl__graph_failed(const attncl_graph *g);

// The value behind the i-th input.
attncl_value attncl__graph_input_value(const attncl_graph *g, size_t i);

// The value behind the output called `name`; the null value when there is none.
attncl_value attncl__graph_output_named(const attncl_graph *g, const char *name);

// attncl_graph_write() without its wait: `data` must stay as it is until the queue has been waited
// for.
attncl_status attncl__graph_write_queued(attncl_graph *g, const char *name, const void *data,
                                         size_t bytes);

attncl_context *attncl__graph_context(const attncl_graph *g);

// With ATTNCL_GUARD: checks the guard bytes around every value; names the first op whose neighbour
// was overwritten.
attncl_status attncl__graph_check_guards(attncl_graph *g);

#endif
