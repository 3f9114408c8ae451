// SPDX-License-Identifier: MIT
//
// The context's queues: the one that everything goes to, and side queues for independent branches of
// graphs, which are created when the first graph that has some is compiled.
//
// What a wait for them fails with is counted: a graph that ran meanwhile refuses to be read.

#include <assert.h>

#include "device/internal.h"

attncl_status attncl__queue_create(attncl_context *ctx, cl_command_queue *ret)
{
    cl_int code = CL_SUCCESS;

    *ret = clCreateCommandQueue(ctx->cl, ctx->device, ctx->profile ? CL_QUEUE_PROFILING_ENABLE : 0,
                                &code);
    TRY(CL_CODE(code, "clCreateCommandQueue"));
    attncl__object_created(OBJECT_QUEUE);
    return ATTNCL_OK;
}

attncl_status attncl__queues_open(attncl_context *ctx, int n)
{
    attncl_status status = ATTNCL_OK;

    assert(n >= 1 && n <= MAX_QUEUES);
    pthread_mutex_lock(&ctx->lock);
    for (int i = atomic_load(&ctx->n_side_queues); i < n - 1 && status == ATTNCL_OK; ++i) {
        status = attncl__queue_create(ctx, &ctx->side_queues[i]);
        if (status == ATTNCL_OK)
            atomic_store(&ctx->n_side_queues, i + 1);
    }
    pthread_mutex_unlock(&ctx->lock);
    return status;
}

// Waits for queue `lowest` and those above it; the first failure, which is counted.
static cl_int finish_from(attncl_context *ctx, int lowest)
{
    cl_int first = CL_SUCCESS;

    for (int i = atomic_load(&ctx->n_side_queues); i >= lowest; --i) {
        const cl_int code = clFinish(attncl__queue(ctx, i));
        first = first == CL_SUCCESS ? code : first;
    }
    if (first != CL_SUCCESS) // whatever it is, nothing says that the commands are done
        atomic_fetch_add(&ctx->n_faults, 1);
    return first;
}

void attncl__queue_drain(attncl_context *ctx)
{
    (void)finish_from(ctx, 0);
}

attncl_status attncl__queue_finish(attncl_context *ctx)
{
    return CL_CODE(finish_from(ctx, 0), "clFinish");
}

attncl_status attncl__side_queues_finish(attncl_context *ctx)
{
    return CL_CODE(finish_from(ctx, 1), "clFinish");
}

attncl_status attncl__transfer_check(attncl_context *ctx, cl_int code, const char *call)
{
    // The two are about the call itself, which had something to allocate.
    if (code != CL_SUCCESS && code != CL_OUT_OF_HOST_MEMORY &&
        code != CL_MEM_OBJECT_ALLOCATION_FAILURE)
        atomic_fetch_add(&ctx->n_faults, 1);
    return CL_CODE(code, call);
}

attncl_status attncl_context_finish(attncl_context *context)
{
    REQUIRE(context, ATTNCL_ERR_ARGUMENT, "context is NULL");
    TRY(attncl__context_usable(context));
    return attncl__queue_finish(context);
}
