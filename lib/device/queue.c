// SPDX-License-Identifier: MIT
//
// Waiting for the context's queue.  What fails there is counted: a graph that ran meanwhile refuses to be read.

#include "base/try.h"
#include "device/clerr.h"
#include "device/internal.h"

attncl_status attncl__transfer_check(attncl_context *ctx, cl_int code, const char *call)
{
    // The two are about the call itself, which had something to allocate.
    if (code != CL_SUCCESS && code != CL_OUT_OF_HOST_MEMORY &&
        code != CL_MEM_OBJECT_ALLOCATION_FAILURE)
        atomic_fetch_add(&ctx->n_faults, 1);
    return CL_CODE(code, call);
}

void attncl__queue_drain(attncl_context *ctx)
{
    if (clFinish(ctx->queue) != CL_SUCCESS)
        atomic_fetch_add(&ctx->n_faults, 1);
}

attncl_status attncl__queue_finish(attncl_context *ctx)
{
    const cl_int code = clFinish(ctx->queue);

    if (code != CL_SUCCESS) // whatever it is, nothing says that the commands are done
        atomic_fetch_add(&ctx->n_faults, 1);
    return CL_CODE(code, "clFinish");
}

attncl_status attncl_context_finish(attncl_context *context)
{
    REQUIRE(context, ATTNCL_ERR_ARGUMENT, "context is NULL");
    TRY(attncl__context_usable(context));
    return attncl__queue_finish(context);
}
