// SPDX-License-Identifier: MIT
#ifndef ATTNCL_OPENCL_H
#define ATTNCL_OPENCL_H
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include "attncl/attncl.h"
#include <CL/cl.h>
ATTNCL_BEGIN
ATTNCL_API attncl_status attncl_context_adopt(cl_context cl, cl_device_id device,
                                              cl_command_queue queue,
                                              const attncl_context_options *options,
                                              attncl_context **context_ret);
ATTNCL_API attncl_status attncl_graph_bind(attncl_graph *graph, const char *name, cl_mem buffer,
                                           int64_t offset);
ATTNCL_API attncl_status attncl_graph_enqueue(attncl_graph *graph, cl_uint n_wait,
                                              const cl_event *wait, cl_event *event_ret);
ATTNCL_END
#endif
