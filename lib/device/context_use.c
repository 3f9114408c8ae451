// SPDX-License-Identifier: MIT
//
// Contexts in use: process and object checks, queues, counts of OpenCL objects, and events.

#include <assert.h>
#include <unistd.h>

#include "base/struct.h"
#include "device/internal.h"

attncl_status attncl__context_check_usable(const attncl_context *ctx)
{
    REQUIRE(ctx->pid == getpid(), ATTNCL_ERR_STATE,
            "the context belongs to process %ld, this is its fork %ld", (long)ctx->pid,
            (long)getpid());
    return ATTNCL_OK;
}

void attncl__context_add_child(attncl_context *ctx, const char *kind)
{
    pthread_mutex_lock(&ctx->lock);
    ++ctx->n_children;
    ctx->last_child_kind = kind;
    pthread_mutex_unlock(&ctx->lock);
}

void attncl__context_remove_child(attncl_context *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    assert(ctx->n_children > 0);
    --ctx->n_children;
    pthread_mutex_unlock(&ctx->lock);
}

attncl_status attncl_environment_check(void)
{
    return attncl__env_check();
}

attncl_status attncl_context_device(const attncl_context *context, attncl_device_info *info_ret)
{
    REQUIRE(context && info_ret, ATTNCL_ERR_ARGUMENT, "context or info_ret is NULL");
    TRY(attncl__context_check_usable(context));
    return STRUCT_WRITE(attncl_device_info, info_ret, &context->info);
}

// -- queues.  Side queues, for independent branches of graphs, are created when a graph first needs them.  Failed waits
// are counted, so that graphs in flight refuse to be read.

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

// Waits for the queues from `lowest` up.  Counts and returns the first failure.
static cl_int finish_from(attncl_context *ctx, int lowest)
{
    cl_int first = CL_SUCCESS;

    for (int i = atomic_load(&ctx->n_side_queues); i >= lowest; --i) {
        const cl_int code = clFinish(attncl__queue(ctx, i));
        first = first == CL_SUCCESS ? code : first;
    }
    if (first != CL_SUCCESS) // any code: the commands may not be done
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

attncl_status attncl__check_transfer(attncl_context *ctx, cl_int code, const char *call)
{
    // These two codes concern the call itself, which allocates memory.
    if (code != CL_SUCCESS && code != CL_OUT_OF_HOST_MEMORY &&
        code != CL_MEM_OBJECT_ALLOCATION_FAILURE)
        atomic_fetch_add(&ctx->n_faults, 1);
    return CL_CODE(code, call);
}

attncl_status attncl_context_finish(attncl_context *context)
{
    REQUIRE(context, ATTNCL_ERR_ARGUMENT, "context is NULL");
    TRY(attncl__context_check_usable(context));
    return attncl__queue_finish(context);
}

// -- counts of OpenCL objects

static atomic_long live[N_OBJECT_KINDS];
static atomic_long created[N_OBJECT_KINDS];

void attncl__objects_count(struct object_counts *ret)
{
    for (int i = 0; i < N_OBJECT_KINDS; ++i) {
        ret->live[i] = atomic_load(&live[i]);
        ret->created[i] = atomic_load(&created[i]);
    }
}

void attncl__object_created(enum object_kind kind)
{
    atomic_fetch_add(&live[kind], 1);
    atomic_fetch_add(&created[kind], 1);
}

void attncl__object_released(enum object_kind kind)
{
    atomic_fetch_sub(&live[kind], 1);
}

// -- events

void attncl__event_release(cl_event *event)
{
    if (!*event)
        return;
    clReleaseEvent(*event);
    attncl__object_released(OBJECT_EVENT);
    *event = NULL;
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
