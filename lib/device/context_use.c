// SPDX-License-Identifier: MIT
//
// Contexts in use: by which process, by how many objects, on which device.

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

attncl_status attncl_context_device(const attncl_context *context, attncl_device_info *info_ret)
{
    REQUIRE(context && info_ret, ATTNCL_ERR_ARGUMENT, "context or info_ret is NULL");
    TRY(attncl__context_usable(context));
    return STRUCT_WRITE(attncl_device_info, info_ret, &context->info);
}

attncl_status attncl_context_keep_selftest(attncl_context *context, const char *failed)
{
    REQUIRE(context && failed, ATTNCL_ERR_ARGUMENT, "context or failed is NULL");
    TRY(attncl__context_usable(context));
    return attncl__selftest_keep(context, failed);
}
