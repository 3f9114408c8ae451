// SPDX-License-Identifier: MIT
//
// Contexts in use: by which process, by how many objects, on which device; and a count of all OpenCL objects.

#include <assert.h>
#include <unistd.h>

#include "base/struct.h"
#include "device/internal.h"

attncl_status attncl__context_usable(const attncl_context *ctx)
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
    TRY(attncl__context_usable(context));
    return STRUCT_WRITE(attncl_device_info, info_ret, &context->info);
}

// -- OpenCL objects, created and alive

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

void attncl__event_release(cl_event *event)
{
    if (!*event)
        return;
    clReleaseEvent(*event);
    attncl__object_released(OBJECT_EVENT);
    *event = NULL;
}

void attncl__event_transfer(cl_event event)
{
    if (event)
        attncl__object_released(OBJECT_EVENT);
}
