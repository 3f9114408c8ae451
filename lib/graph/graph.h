// SPDX-License-Identifier: MIT
// A graph inside: values, nodes, and what layers call to add them.
#ifndef ATTNCL_GRAPH_GRAPH_H
#define ATTNCL_GRAPH_GRAPH_H

#include "attncl/graph.h"
#include "device/cl.h"
#include "op/op.h"

// A graph that belongs to no context: it infers shapes and cannot be compiled.  Owned by the caller.
attncl_status attncl__graph_create_unbound(attncl_graph **graph_ret);

// A weight of which only the shape is known: of graphs without a context.
attncl_value attncl__graph_placeholder(attncl_graph *g, attncl_dtype dtype, int rank,
                                       const int64_t *dim);

// Adds one op.  `in` has n_in of the class's inputs, null values for absent ones (missing trailing
// ones count as absent).  `params` is copied.  Returns output 0; further outputs through
// attncl__graph_result().
attncl_value attncl__graph_add(attncl_graph *g, const struct op_class *cls, const void *params,
                               const attncl_value *in, int n_in);
#define IN(...)                                                                                    \
    (const attncl_value[]){__VA_ARGS__},                                                           \
        (int)(sizeof((const attncl_value[]){__VA_ARGS__}) / sizeof(attncl_value))

// Output `i` of the node that produced `first`.
attncl_value attncl__graph_result(attncl_graph *g, attncl_value first, int i);

// A view of `base`: same memory, other extents and strides (desc->start counts from base's own
// start).
attncl_value attncl__graph_view(attncl_graph *g, attncl_value base, const struct tensor_desc *desc);

// The handle of value `id`, which carries the graph's serial number; the null value for 0.
attncl_value attncl__graph_handle(const attncl_graph *g, int id);

// Whether `v` is a value of another graph.
bool attncl__graph_is_foreign(const attncl_graph *g, attncl_value v);

// The value's shape; NULL for the null value and for a value of another graph.  Valid until the next node is added.
const struct tensor_desc *attncl__graph_desc(const attncl_graph *g, attncl_value v);

// F32 zeros.
attncl_value attncl__graph_zeros(attncl_graph *g, int rank, const int64_t *dim);

// Nodes added until the matching end are executed `trip_count` times in each run.  Returns the
// index of the iteration, I32 [1], counted from 0.  A value computed inside and used after the loop
// is that of the last iteration; what iterations pass on is state (a stack of rows:
// loop_stack_fwd).  `reversed`: the index counts from trip_count - 1 down to 0.  Loops do not nest.
attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t trip_count, bool reversed);
void attncl__graph_loop_end(attncl_graph *g);

// Before compiling: the n-th state of each name that g has is the n-th of that name of `owner`, where
// it has one; their shapes must be equal.  `owner` is compiled already, and stays until g is.
void attncl__graph_share_state(attncl_graph *g, const attncl_graph *owner);

// A custom-gradient region: nodes that are not differentiated one by one, such as a loop's: their
// inputs and outputs, and the backward pass of all of them.  `in` and `out` belong to the region:
// one allocation, with `context` after it, owned by the graph from attncl__grad_region_end() on.
struct grad_region {
    int n_in, n_out;
    attncl_value *in, *out;
    void *context;
    // Adds the nodes that compute dx[i], the gradient of in[i], where requires_grad[i]; another
    // dx[i] may stay null.  dy[i] is null where there is no gradient.  A failure fails the graph.
    void (*backward)(attncl_graph *g, const struct grad_region *region, const attncl_value *dy,
                     const bool *requires_grad, attncl_value *dx);
};

// An empty region with space for n_in, n_out and context_bytes, copied from `context`; NULL: the
// graph has failed.
struct grad_region *attncl__grad_region_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes);
// The region is the nodes since its beginning; the graph takes ownership.  Regions do not nest.
void attncl__grad_region_end(attncl_graph *g, struct grad_region *region);

// Fails the graph from a builder and returns the null value:
// GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "k has D = %d, q has D = %d", ...).
attncl_value attncl__graph_fail(attncl_graph *g, attncl_status status, const char *file, int line,
                                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define GRAPH_FAIL(g, status, ...)                                                                 \
    attncl__graph_fail((g), (status), __FILE__, __LINE__, __VA_ARGS__)

// Keeps the last error as the graph's first failure, the scope in front; the null value.
attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status);

// True after a builder has failed, and for NULL: builders then add nothing and return null values.
bool attncl__graph_failed(const attncl_graph *g);

bool attncl__graph_has_input(const attncl_graph *g, const char *name);

// The value of the i-th input.
attncl_value attncl__graph_input_value(const attncl_graph *g, size_t i);

// The value of the output called `name`; the null value when there is none.
attncl_value attncl__graph_output_named(const attncl_graph *g, const char *name);

// Memory for tensors that live equally long, where the device uses the host's: huge pages, which the tensors' elements
// are read into.  Begins as zeros.
struct tensor_block {
    cl_mem mem;
    char *mapped;
    size_t used, bytes;
};
// To be called before anything runs with the tensors, which keep their memory.
attncl_status attncl__tensor_block_end(attncl_context *ctx, struct tensor_block *block);
// After a failure, whose text it leaves; nothing after attncl__tensor_block_end().
void attncl__tensor_block_drop(attncl_context *ctx, struct tensor_block *block);

// Elements of a type: all of them at `from`, NULL for zeros, or what read() gets, `bytes` from byte `offset` on.
struct tensor_source {
    attncl_dtype dtype;
    attncl_status (*read)(const void *from, uint64_t offset, size_t bytes, void *to); // NULL: none
    const void *from;
    struct tensor_block *block; // NULL: memory of its own
};

// As attncl_tensor_create(); what read() gets is never in host memory as a whole.
attncl_status attncl__tensor_create_from(attncl_context *context, attncl_dtype dtype, int rank,
                                         const int64_t *dim, const struct tensor_source *source,
                                         attncl_tensor **tensor_ret);

// Bytes of a tensor from `offset` on, which must be there.  Blocks.
struct tensor_desc attncl__tensor_desc(const attncl_tensor *t);
attncl_status attncl__tensor_read_part(attncl_tensor *tensor, size_t offset, void *data,
                                       size_t bytes);
attncl_status attncl__tensor_write_part(attncl_tensor *tensor, size_t offset, const void *data,
                                        size_t bytes);

attncl_context *attncl__graph_context(const attncl_graph *g);

// Enqueues zeros for all elements of a tensor.
attncl_status attncl__tensor_clear(attncl_tensor *t);

#endif
