// SPDX-License-Identifier: MIT
/**
 * @file attncl/graph.h
 * Graphs: describe a computation, compile it for the device, run it many times.
 *
 *     attncl_graph *g = NULL;
 *     attncl_graph_create(context, &g);
 *     attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){rows, width});
 *     attncl_graph_output(g, "y", attncl_softmax(g, x, -1));
 *     attncl_graph_compile(g, NULL);                      // reports the first mistake made above
 *     attncl_graph_write(g, "x", data, bytes);
 *     attncl_graph_run(g);
 *     attncl_graph_read(g, "y", result, bytes);
 *
 * Builders return a value.  The first failure is remembered by the graph with the scope it happened
 * in; later builders do nothing and return the null value; attncl_graph_compile() reports it.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_GRAPH_H
#define ATTNCL_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/context.h"
#include "attncl/dtype.h"
#include "attncl/tensor.h"

ATTNCL_BEGIN

typedef struct attncl_graph attncl_graph;

/** A value of one graph.  Passed by value, so it never changes.  id 0 is the null value: "absent",
 * or the graph has failed. */
typedef struct attncl_value {
    int32_t id;
    uint32_t graph; /**< which graph: builders of another one fail with ERR_ARGUMENT */
} attncl_value;

/** Initializer of a null value, also inside the initializers of structs. */
#define ATTNCL_VALUE_INIT                                                                          \
    {                                                                                              \
        0, 0                                                                                       \
    }

/** The null value: pass it for an optional input that is absent. */
#define ATTNCL_NONE_VALUE (attncl__none_value())
static inline attncl_value attncl__none_value(void)
{
    attncl_value none = ATTNCL_VALUE_INIT;
    return none;
}

/** A value's type and extents.  Passed by value, so it never changes. */
typedef struct attncl_shape {
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
} attncl_shape;

/** An empty graph, owned by the caller, released by attncl_graph_destroy() before its context.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_NO_MEMORY. */
ATTNCL_API attncl_status attncl_graph_create(attncl_context *context, attncl_graph **graph_ret);

/** NULL is fine.  Waits for commands in flight.
 * Errors: none. */
ATTNCL_API void attncl_graph_destroy(attncl_graph *graph);

/* building */

/** A named input of the shape `dim`, F32, I32 or U8 (masks: non-zero = visible), filled by attncl_graph_write() before
 * a run.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_graph_input(attncl_graph *g, const char *name, attncl_dtype dtype,
                                           int rank, const int64_t *dim);

/** An I32 input whose elements must lie in [low, high): attncl_graph_write() refuses others and
 * names the first.
 * Errors: as attncl_graph_input(). */
ATTNCL_API attncl_value attncl_graph_index_input(attncl_graph *g, const char *name, int rank,
                                                 const int64_t *dim, int64_t low, int64_t high);

/** A tensor's value, of its shape.  The tensor is borrowed and must outlive the graph.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_graph_tensor(attncl_graph *g, attncl_tensor *tensor);

/** A constant of the shape `dim`, copied from `data`: a table or a mask.  `data` has the type `dtype`; types as
 * attncl_graph_input().
 * Errors: as attncl_tensor_create(), kept by the graph. */
ATTNCL_API attncl_value attncl_graph_constant(attncl_graph *g, attncl_dtype dtype, int rank,
                                              const int64_t *dim, const void *data);

/** State of the shape `dim`, F32 or I32: memory that ops update in place and that keeps its content between runs.  It
 * starts as zeros; attncl_graph_reset() zeroes it again.
 * Errors: as attncl_graph_input(). */
ATTNCL_API attncl_value attncl_graph_state(attncl_graph *g, const char *name, attncl_dtype dtype,
                                           int rank, const int64_t *dim);

/** Names a value as an output, to be read after a run.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API void attncl_graph_output(attncl_graph *g, const char *name, attncl_value value);

/** Names what is built until the matching pop: scopes appear in errors
 * ("encoder.layers.3.self_attn") and profiles.
 * Errors: ERR_STATE when nested too deep, kept by the graph. */
ATTNCL_API void attncl_graph_push_scope(attncl_graph *g, const char *name);
/** Ends the innermost scope.  Errors: none. */
ATTNCL_API void attncl_graph_pop_scope(attncl_graph *g);

/** The shape of a value; rank -1 for the null value.
 * Errors: none. */
ATTNCL_API attncl_shape attncl_graph_shape(const attncl_graph *g, attncl_value value);

/** The first failure of the builders so far, ATTNCL_OK if none; the message is put into
 * attncl_last_error().
 * Errors: the first failure. */
ATTNCL_API attncl_status attncl_graph_status(const attncl_graph *g);

/* compiling */

/** What a graph needs on the device, in bytes.  Start from ATTNCL_MEMORY_REPORT_INIT. */
typedef struct attncl_memory_report {
    size_t struct_size;
    size_t weights_bytes;     /**< tensors and constants, each once (shared ones in each graph) */
    size_t state_bytes;       /**< memory kept between runs */
    size_t io_bytes;          /**< inputs and outputs */
    size_t activations_bytes; /**< values between nodes, at their peak, after reuse */
    size_t scratch_bytes;     /**< the largest node's scratch */
    size_t arena_bytes;       /**< one allocation for activations and scratch */
    size_t unshared_bytes;    /**< activations and scratch without reuse */
} attncl_memory_report;

#define ATTNCL_MEMORY_REPORT_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_memory_report), 0, 0, 0, 0, 0, 0, 0                                          \
    }

/** How to compile.  Start from ATTNCL_COMPILE_OPTIONS_INIT; zero means default. */
typedef struct attncl_compile_options {
    size_t struct_size;
    size_t
        memory_limit; /**< limit of device memory in bytes, 0: the device's.  Beyond it, compiling
                            fails with both numbers */
    attncl_precision precision; /**< 0: the context's */
    int n_queues; /**< in-order queues for independent branches, 1 to 4; 0: the environment variable
                     ATTNCL_QUEUES, else 1.  Results have the same bits */
} attncl_compile_options;

#define ATTNCL_COMPILE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_compile_options), 0, ATTNCL_PRECISION_DEFAULT, 0                             \
    }

/** Reports what attncl_graph_compile() will allocate, without allocating, building or launching anything.  It assumes
 * that kernels which were not compared on this device yet are right; their fallbacks may need more memory.
 * Errors: the first failure of the builders, ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_graph_memory(const attncl_graph *g,
                                             attncl_memory_report *report_ret);

/**
 * Builds the kernels, plans and allocates memory, and prepares the commands.  Returns the builders'
 * first failure, if any.  A compiled graph takes no more nodes.
 * Errors: the first failure, ERR_DEVICE_MEMORY, ERR_COMPILE, ERR_OPENCL, ERR_STATE if already
 * compiled.
 */
ATTNCL_API attncl_status attncl_graph_compile(attncl_graph *g,
                                              const attncl_compile_options *options);

/* running */

/** Fills an input: `bytes` must be exactly the input's, in its own type.  Blocks until `data` may
 * be reused.
 * Errors: ERR_ARGUMENT for the name, the size or an element out of range, ERR_STATE before
 * compiling, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_graph_write(attncl_graph *g, const char *name, const void *data,
                                            size_t bytes);

/** The same from another type: floats to F32, integers and BOOL to I32 or U8.  `count` elements.
 * Errors: as attncl_graph_write(), ERR_DTYPE. */
ATTNCL_API attncl_status attncl_graph_write_as(attncl_graph *g, const char *name,
                                               attncl_dtype data_dtype, const void *data,
                                               size_t count);

/** Enqueues one run of a compiled graph and returns; attncl_graph_read() waits for it.
 *
 * After a failed run (this call or a later wait reports it) there are no outputs: attncl_graph_read()
 * returns ERR_STATE until a run succeeds.  A graph with state, with weights that it updates or with bound
 * buffers then refuses runs and reads with ERR_STATE until attncl_graph_reset().  The weights and buffers
 * that the failed run writes are undefined: write them again.
 * Errors: ERR_STATE before compiling or after a run that failed, ERR_OPENCL, ERR_BLAS. */
ATTNCL_API attncl_status attncl_graph_run(attncl_graph *g);

/** Waits for the runs in flight and copies an output: `bytes` exactly the output's.
 * Errors: as attncl_graph_write(); ERR_STATE after a run that failed. */
ATTNCL_API attncl_status attncl_graph_read(attncl_graph *g, const char *name, void *data,
                                           size_t bytes);

/** Zeroes all state.  After a failed run, the graph can run again.  Repeat a reset that fails.
 * Errors: ERR_STATE before compiling, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_graph_reset(attncl_graph *g);

/** Waits for the runs in flight and copies a state as stored, in the type that attncl_graph_state_name() reports:
 * `bytes` exactly the state's.  ERR_ARGUMENT for a name that several states have, as those of equal layers do.
 * Errors: ERR_ARGUMENT for the name or the size, ERR_STATE before compiling or after a run that failed,
 * ERR_OPENCL. */
ATTNCL_API attncl_status attncl_graph_state_read(attncl_graph *g, const char *name, void *data,
                                                 size_t bytes);

/** Replaces a state for later runs.  Blocks until `data` may be reused.
 * Errors: as attncl_graph_state_read(). */
ATTNCL_API attncl_status attncl_graph_state_write(attncl_graph *g, const char *name,
                                                  const void *data, size_t bytes);

/* asking */

/** States of a compiled graph, those of layers too; 0 before compiling.  Errors: none. */
ATTNCL_API size_t attncl_graph_state_count(const attncl_graph *g);
/** Name (borrowed), type (F32, I32, F16, BF16 or U8) and shape of state `i`; NULL beyond the last.
 * Errors: none. */
ATTNCL_API const char *attncl_graph_state_name(const attncl_graph *g, size_t i,
                                               attncl_shape *shape_ret);

/** Inputs of the graph.  Errors: none. */
ATTNCL_API size_t attncl_graph_input_count(const attncl_graph *g);
/** Name (borrowed) and shape of input or output `i`; NULL beyond the last.
 * Errors: none. */
ATTNCL_API const char *attncl_graph_input_name(const attncl_graph *g, size_t i,
                                               attncl_shape *shape_ret);
/** The same for output `i`, borrowed.  Errors: none. */
ATTNCL_API const char *attncl_graph_output_name(const attncl_graph *g, size_t i,
                                                attncl_shape *shape_ret);

ATTNCL_END

#endif
