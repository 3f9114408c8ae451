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
#define ATTNCL_NONE_VALUE (attncl_value_none())
static inline attncl_value attncl_value_none(void)
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

/** NULL is fine.  Waits for work under way.
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
ATTNCL_API attncl_value attncl_graph_weight(attncl_graph *g, attncl_tensor *tensor);

/** Elements known now, copied, of the shape `dim`: tables and masks.  Types as attncl_graph_input(), in that very type.
 * Errors: as attncl_tensor_create(), kept by the graph. */
ATTNCL_API attncl_value attncl_graph_constant(attncl_graph *g, attncl_dtype dtype, int rank,
                                              const int64_t *dim, const void *data);

/** Memory of the shape `dim`, F32 or I32, that ops update in place and that keeps its content from run to run; starts
 * as zeros.  attncl_graph_reset() zeroes it again.  F16 and BF16 are for the layers' own: no op
 * that a caller adds takes them.
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
    size_t state_bytes;       /**< memory kept from run to run */
    size_t io_bytes;          /**< inputs and outputs */
    size_t activations_bytes; /**< values between nodes, at their peak, after reuse */
    size_t scratch_bytes;     /**< the largest node's scratch */
    size_t arena_bytes;       /**< one allocation for activations and scratch */
    size_t unshared_bytes;    /**< what activations and scratch would take without reuse */
} attncl_memory_report;

#define ATTNCL_MEMORY_REPORT_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_memory_report), 0, 0, 0, 0, 0, 0, 0                                          \
    }

/** How to compile.  Start from ATTNCL_COMPILE_OPTIONS_INIT; zero means default. */
typedef struct attncl_compile_options {
    size_t struct_size;
    size_t memory_limit; /**< most bytes of device memory, 0: the device's; above it compile fails
                            and says both numbers */
    attncl_precision precision; /**< 0: the context's */
    int n_queues; /**< in-order queues that independent branches go to, 1 to 4; 0: as the environment
                     variable ATTNCL_QUEUES says, else 1.  Results are the same bit for bit; with
                     more than 1 a run creates events and releases them */
} attncl_compile_options;

#define ATTNCL_COMPILE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_compile_options), 0, ATTNCL_PRECISION_DEFAULT, 0                             \
    }

/** What attncl_graph_compile() will allocate.  Asking allocates nothing on the device, builds and launches nothing:
 * kernels that were not compared on this device yet count as right, so that more may be needed where they are not.
 * Errors: the first failure of the builders, ERR_ARGUMENT. */
ATTNCL_API attncl_status attncl_graph_memory(const attncl_graph *g,
                                             attncl_memory_report *report_ret);

/**
 * Fixes the graph: kernels built, memory planned and allocated, commands recorded.  Returns the
 * first failure of the builders if there was one.  A compiled graph takes no more nodes.
 * Errors: the first failure, ERR_DEVICE_MEMORY, ERR_COMPILE, ERR_OPENCL, ERR_STATE when compiled
 * already.
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
 * After a run that failed, by this call or as a later wait for the queue tells, there are no outputs:
 * attncl_graph_read() gives ERR_STATE until a run succeeds.  A graph that keeps something from run to
 * run, which is state, weights that it updates, or a caller's bound buffers, refuses runs and reads
 * with ERR_STATE until attncl_graph_reset(); the weights and buffers that the run writes are
 * undefined, and the caller writes them again.
 * Errors: ERR_STATE before compiling or after a run that failed, ERR_OPENCL, ERR_BLAS. */
ATTNCL_API attncl_status attncl_graph_run(attncl_graph *g);

/** Waits for the runs under way and copies an output: `bytes` exactly the output's.
 * Errors: as attncl_graph_write(); ERR_STATE after a run that failed. */
ATTNCL_API attncl_status attncl_graph_read(attncl_graph *g, const char *name, void *data,
                                           size_t bytes);

/** Zeroes all state.  After a run that failed, the graph runs again; a reset that fails is to be
 * repeated.
 * Errors: ERR_STATE before compiling, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_graph_reset(attncl_graph *g);

/** Waits for the runs under way and copies a state as it is stored, of the type that
 * attncl_graph_state_name() gives: `bytes` exactly the state's.  Layers name state of their own alike; a name that
 * several states have is ERR_ARGUMENT.
 * Errors: ERR_ARGUMENT for the name or the size, ERR_STATE before compiling or after a run that failed,
 * ERR_OPENCL. */
ATTNCL_API attncl_status attncl_graph_state_read(attncl_graph *g, const char *name, void *data,
                                                 size_t bytes);

/** Replaces a state, which runs from now on find.  Blocks until `data` may be reused.
 * Errors: as attncl_graph_state_read(). */
ATTNCL_API attncl_status attncl_graph_state_write(attncl_graph *g, const char *name,
                                                  const void *data, size_t bytes);

/* asking */

/** States of a compiled graph, those of layers too; 0 before compiling.  Errors: none. */
ATTNCL_API size_t attncl_graph_state_count(const attncl_graph *g);
/** Name (borrowed), type (F32, I32, F16 or BF16) and shape of state `i`; NULL beyond the last.
 * Errors: none. */
ATTNCL_API const char *attncl_graph_state_name(const attncl_graph *g, size_t i,
                                               attncl_shape *shape_ret);

/** Inputs of the graph.  Errors: none. */
ATTNCL_API size_t attncl_graph_input_count(const attncl_graph *g);
/** Outputs of the graph.  Errors: none. */
ATTNCL_API size_t attncl_graph_output_count(const attncl_graph *g);
/** Name (borrowed) and shape of input or output `i`; NULL beyond the last.
 * Errors: none. */
ATTNCL_API const char *attncl_graph_input_name(const attncl_graph *g, size_t i,
                                               attncl_shape *shape_ret);
/** The same for output `i`, borrowed.  Errors: none. */
ATTNCL_API const char *attncl_graph_output_name(const attncl_graph *g, size_t i,
                                                attncl_shape *shape_ret);

ATTNCL_END

#endif
