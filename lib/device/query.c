// SPDX-License-Identifier: MIT
//
// Queries of buffers, events, kernels and device limits.

#include <string.h>

#include "device/internal.h"

attncl_status attncl__device_max_argument_bytes(attncl_context *ctx, size_t *ret)
{
    return DEVICE_QUERY(ctx->device, CL_DEVICE_MAX_PARAMETER_SIZE, ret);
}

attncl_status attncl__buffer_get_size(attncl_context *ctx, cl_mem mem, size_t *bytes_ret)
{
    cl_context owner = NULL;

    TRY_CL(clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof owner, &owner, NULL));
    REQUIRE(owner == ctx->cl, ATTNCL_ERR_ARGUMENT, "the buffer belongs to another OpenCL context");
    TRY_CL(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof *bytes_ret, bytes_ret, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__event_is_complete(cl_event event, bool *ret)
{
    cl_int state = CL_QUEUED;

    TRY_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    TRY(CL_CODE(state < 0 ? state : CL_SUCCESS, "a command"));
    *ret = state == CL_COMPLETE;
    return ATTNCL_OK;
}

attncl_status attncl__event_wait(attncl_context *ctx, cl_event event)
{
    return attncl__check_transfer(ctx, clWaitForEvents(1, &event), "clWaitForEvents");
}

attncl_status attncl__event_times(cl_event event, uint64_t *start_ret, uint64_t *end_ret)
{
    cl_ulong start, end;

    TRY_CL(clWaitForEvents(1, &event));
    TRY_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
    TRY_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
    *start_ret = start;
    *end_ret = end;
    return ATTNCL_OK;
}

attncl_status attncl__kernel_query_arg(cl_kernel kernel, cl_uint i, struct kernel_arg *ret)
{
    cl_kernel_arg_address_qualifier place = CL_KERNEL_ARG_ADDRESS_PRIVATE;

    const cl_int code =
        clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof place, &place, NULL);
    if (code == CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
        return ATTNCL_OK;
    TRY(CL_CODE(code, "clGetKernelArgInfo"));
    if (place == CL_KERNEL_ARG_ADDRESS_PRIVATE)
        TRY_CL(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof ret->kind, ret->kind,
                                  NULL));
    else
        strcpy(ret->kind, place == CL_KERNEL_ARG_ADDRESS_LOCAL ? "local memory" : "memory");
    TRY_CL(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_NAME, sizeof ret->name, ret->name, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__kernel_query_limits(attncl_context *ctx, cl_kernel kernel, size_t *group_ret,
                                          size_t *local_ret, size_t *private_ret)
{
    size_t group = 0;
    cl_ulong local = 0, spilled = 0;

    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group,
                                    &group, NULL));
    TRY_CL(clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                    &local, NULL));
    const cl_int code = clGetKernelWorkGroupInfo(kernel, ctx->device, CL_KERNEL_PRIVATE_MEM_SIZE,
                                                 sizeof spilled, &spilled, NULL);
    if (attncl__cl_is_refusal(code)) // some drivers do not answer this query
        spilled = 0;
    else
        TRY(CL_CODE(code, "clGetKernelWorkGroupInfo"));
    *group_ret = group;
    *local_ret = (size_t)local;
    *private_ret = (size_t)spilled;
    return ATTNCL_OK;
}
