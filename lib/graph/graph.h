// SPDX-License-Identifier: MIT
// The graph builder that layers use.
#ifndef ATTNCL_GRAPH_GRAPH_H
#define ATTNCL_GRAPH_GRAPH_H

#include "attncl/graph.h"
#include "device/cl.h"
#include "op/op.h"

// Creates a graph without a context, which infers shapes but cannot be compiled.
attncl_status attncl__graph_create_unbound(attncl_graph **graph_ret);

// Adds a weight that is known by its shape alone, in a graph without a context.
attncl_value attncl__graph_placeholder(attncl_graph *g, attncl_dtype dtype, int rank,
                                       const int64_t *dim);

// Adds one op.  `in` has the first n_in inputs of the class, the null value for absent ones; further
// inputs are absent.  `params` is copied.  Returns output 0; attncl__graph_result() returns others.
attncl_value attncl__graph_add(attncl_graph *g, const struct op_class *cls, const void *params,
                               const attncl_value *in, int n_in);
#define IN(...)                                                                                    \
    (const attncl_value[]){__VA_ARGS__},                                                           \
        (int)(sizeof((const attncl_value[]){__VA_ARGS__}) / sizeof(attncl_value))

// Returns output `i` of the node that produced `first`.
attncl_value attncl__graph_result(attncl_graph *g, attncl_value first, int i);

// Adds a view of `base`: same memory, other extents and strides.  desc->start counts from base's start.
attncl_value attncl__graph_view(attncl_graph *g, attncl_value base, const struct tensor_desc *desc);

// Returns the handle of value `id`, which carries the graph's serial number; the null value for 0.
attncl_value attncl__graph_handle(const attncl_graph *g, int id);

bool attncl__graph_is_foreign(const attncl_graph *g, attncl_value v);

// Returns the value's shape; NULL for the null value or another graph's.  Valid until the next node is added.
const struct tensor_desc *attncl__graph_desc(const attncl_graph *g, attncl_value v);

// Adds F32 zeros.
attncl_value attncl__graph_zeros(attncl_graph *g, int rank, const int64_t *dim);

// Begins a loop: nodes added until the matching end are executed `trip_count` times in each run.
// Returns the iteration's index, I32 [1]: from 0 up, or, if `reversed`, from trip_count - 1 down.  A
// value computed inside and used after the loop is the last iteration's.  Iterations pass values on
// through state (a stack of rows: loop_stack_fwd).  Loops do not nest.
attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t trip_count, bool reversed);
void attncl__graph_loop_end(attncl_graph *g);

// Call before compiling g: its n-th state of each name shares the memory of the owner's n-th state of
// that name, if there is one.  Shapes must be equal.  `owner` is compiled and outlives g's compilation.
void attncl__graph_share_state(attncl_graph *g, const attncl_graph *owner);

// A custom-gradient region: nodes that are differentiated as one, such as a loop's.  One allocation,
// including `in`, `out` and `context`; the graph owns it from attncl__grad_region_end() on.
struct grad_region {
    int n_in, n_out;
    attncl_value *in, *out;
    void *context;
    // Adds the nodes that compute dx[i], the gradient of in[i], if requires_grad[i]; other dx[i] may
    // stay null.  dy[i] is null if out[i] has no gradient.  A failure fails the graph.
    void (*backward)(attncl_graph *g, const struct grad_region *region, const attncl_value *dy,
                     const bool *requires_grad, attncl_value *dx);
};

// Begins a region.  Copies `context`; the caller fills in[] and out[].  NULL when the graph has failed.
struct grad_region *attncl__grad_region_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes);
// Ends the region of all nodes added since its beginning.  Regions do not nest.
void attncl__grad_region_end(attncl_graph *g, struct grad_region *region);

// Fails the graph from a builder and returns the null value:
// GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "k has D = %d, q has D = %d", ...).
attncl_value attncl__graph_fail(attncl_graph *g, attncl_status status, const char *file, int line,
                                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define GRAPH_FAIL(g, status, ...)                                                                 \
    attncl__graph_fail((g), (status), __FILE__, __LINE__, __VA_ARGS__)

// Keeps the last error, prefixed by the scope, as the graph's failure.  Returns the null value.
attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status);

// True after a builder has failed, and for NULL: builders then add nothing and return null values.
bool attncl__graph_failed(const attncl_graph *g);

bool attncl__graph_has_input(const attncl_graph *g, const char *name);

// Returns the value of the i-th input.
attncl_value attncl__graph_input_value(const attncl_graph *g, size_t i);

// Returns the value of the output called `name`; the null value if there is none.
attncl_value attncl__graph_find_output(const attncl_graph *g, const char *name);

// On devices that use host memory: one buffer in huge pages for several tensors, mapped while they are filled.  Starts
// as zeros.
struct tensor_block {
    cl_mem mem;
    char *mapped;
    size_t used, bytes;
};
// Unmaps the block; call it before anything runs with the tensors, which keep their memory.
attncl_status attncl__tensor_block_end(attncl_context *ctx, struct tensor_block *block);
// Releases the block after a failure and keeps the error message; does nothing after attncl__tensor_block_end().
void attncl__tensor_block_drop(attncl_context *ctx, struct tensor_block *block);

// A tensor's elements: at `from` (NULL: zeros), or read in pieces by read(from, offset, bytes, to), with `offset` in
// bytes.
struct tensor_source {
    attncl_dtype dtype;
    attncl_status (*read)(const void *from, uint64_t offset, size_t bytes, void *to); // may be NULL
    const void *from;
    struct tensor_block *block; // where to put the tensor; NULL: in a buffer of its own
};

// As attncl_tensor_create().  With read(), the elements are never in host memory all at once.
attncl_status attncl__tensor_create_from(attncl_context *context, attncl_dtype dtype, int rank,
                                         const int64_t *dim, const struct tensor_source *source,
                                         attncl_tensor **tensor_ret);

struct tensor_desc attncl__tensor_desc(const attncl_tensor *t);
// Reads or writes bytes of a tensor from `offset` on, all inside it.  Blocks.
attncl_status attncl__tensor_read_part(attncl_tensor *tensor, size_t offset, void *data,
                                       size_t bytes);
attncl_status attncl__tensor_write_part(attncl_tensor *tensor, size_t offset, const void *data,
                                        size_t bytes);

attncl_context *attncl__graph_context(const attncl_graph *g);

// Enqueues zeros for all elements of a tensor.
attncl_status attncl__tensor_clear(attncl_tensor *t);

#endif
