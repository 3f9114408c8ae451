// SPDX-License-Identifier: MIT
//
// Queries about buffers, events and limits.

#include "device/internal.h"

attncl_status attncl__device_argument_bytes(attncl_context *ctx, size_t *ret)
{
    return DEVICE_ANSWER(ctx->device, CL_DEVICE_MAX_PARAMETER_SIZE, ret);
}

attncl_status attncl__buffer_query(attncl_context *ctx, cl_mem mem, size_t *bytes_ret)
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
    return attncl__transfer_check(ctx, clWaitForEvents(1, &event), "clWaitForEvents");
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
