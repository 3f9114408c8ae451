// SPDX-License-Identifier: MIT
/**
 * @file attncl/opencl.h
 * Working inside the caller's own OpenCL program.  The only public header with OpenCL types;
 * include it apart from attncl.h.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_OPENCL_H
#define ATTNCL_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include "attncl/context.h"
#include "attncl/graph.h"

ATTNCL_BEGIN

/**
 * A context, owned by the caller, inside the caller's OpenCL context, device and queue.  The three
 * are retained, and released by attncl_context_destroy().  The queue must be in-order; work of the
 * library is enqueued into it.
 *
 * `options` may be NULL; its `device` is ignored.  ERR_ARGUMENT when the queue is out-of-order or
 * belongs to another context or device.
 * Errors: ERR_ARGUMENT, ERR_STATE, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_context_adopt(cl_context cl, cl_device_id device,
                                              cl_command_queue queue,
                                              const attncl_context_options *options,
                                              attncl_context **context_ret);

/**
 * Binds a buffer of the caller to an input or output of a compiled graph, from `offset` elements
 * on.  Retained until another buffer is bound or the graph is destroyed.  Used in place when the
 * offset is aligned as the device needs it, else copied on the device within the run.  NULL takes
 * the graph's own buffer again.  On failure the binding is as before.  While a buffer is bound, attncl_graph_write() and
 * attncl_graph_read() of its name return ERR_STATE.  What is bound to an output must not overlap what is bound to
 * another name.
 *
 * ERR_ARGUMENT when there is no such name, the buffer is too small (the message gives both sizes), or kernels
 * can only write an input's buffer or only read an output's.
 * Errors: ERR_ARGUMENT, ERR_STATE before compiling, ERR_OPENCL.
 */
ATTNCL_API attncl_status attncl_graph_bind(attncl_graph *graph, const char *name, cl_mem buffer,
                                           int64_t offset);

/**
 * Enqueues one run and returns at once.
 *
 * @param n_wait     events to wait for, in `wait`; 0 and NULL for none
 * @param event_ret  NULL, or receives an event that completes with the run; the caller releases it
 * Errors: as attncl_graph_run().
 */
ATTNCL_API attncl_status attncl_graph_enqueue(attncl_graph *graph, cl_uint n_wait,
                                              const cl_event *wait, cl_event *event_ret);

ATTNCL_END

#endif
