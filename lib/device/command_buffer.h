// SPDX-License-Identifier: MIT
// Command buffers (cl_khr_command_buffer): kernels that are recorded once and enqueued by one call.
#ifndef ATTNCL_DEVICE_COMMAND_BUFFER_H
#define ATTNCL_DEVICE_COMMAND_BUFFER_H

#include "attncl/context.h"
#include "base/try.h"
#include "device/cl.h"

struct command_buffer; // the driver's

// The extension's functions, as all versions that are known have them.  Headers differ by its version, or lack it.
struct command_buffer_calls {
    struct command_buffer *(CL_API_CALL *create)(cl_uint n_queues, const cl_command_queue *queues,
                                                 const cl_ulong *properties, cl_int *code_ret);
    cl_int(CL_API_CALL *add_kernel)(struct command_buffer *buffer, cl_command_queue queue,
                                    const cl_ulong *properties, cl_kernel kernel, cl_uint n_axes,
                                    const size_t *offset, const size_t *global, const size_t *local,
                                    cl_uint n_wait, const cl_uint *wait, cl_uint *sync_point,
                                    void **handle);
    cl_int(CL_API_CALL *finalize)(struct command_buffer *buffer);
    cl_int(CL_API_CALL *enqueue)(cl_uint n_queues, cl_command_queue *queues,
                                 struct command_buffer *buffer, cl_uint n_wait,
                                 const cl_event *wait, cl_event *event);
    cl_int(CL_API_CALL *release)(struct command_buffer *buffer);
    const cl_ulong *properties; // for create: may be NULL
};

// The functions, where the device has the extension in a version that is known, and may enqueue a buffer
// again before it has run.  *missing_ret: what it lacks, static text; NULL: nothing.
attncl_status attncl__command_buffers_find(const attncl_context *ctx,
                                           struct command_buffer_calls *ret,
                                           const char **missing_ret);

// -- in contexts where they were found: of queue 0, so that kernels run in the order in which they are added

attncl_status attncl__command_buffer_create(attncl_context *ctx, struct command_buffer **ret);
// With the kernel's arguments of now.
attncl_status attncl__command_buffer_add(attncl_context *ctx, struct command_buffer *buffer,
                                         cl_kernel kernel, cl_uint n_axes, const size_t *global,
                                         const size_t *local);
// Nothing is added any more; it may be enqueued.
attncl_status attncl__command_buffer_finalize(attncl_context *ctx, struct command_buffer *buffer);
attncl_status attncl__command_buffer_enqueue(attncl_context *ctx, struct command_buffer *buffer,
                                             cl_uint n_wait, const cl_event *wait, cl_event *event);
void attncl__command_buffer_release(attncl_context *ctx, struct command_buffer **buffer);

#endif
