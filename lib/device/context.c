// SPDX-License-Identifier: MIT
//
// Creation, adoption and destruction of contexts.

#include <unistd.h>

#include "attncl/opencl.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/struct.h"
#include "device/internal.h"
#include "device/program.h"
#include "store/tuning_table.h"

// Also accepts a partly created context, and NULL.
static void release_context(attncl_context *ctx)
{
    if (!ctx)
        return;
    if (ctx->on_destroy)
        ctx->on_destroy(ctx->destroy_user);
    attncl__programs_store(ctx);
    attncl__programs_free(ctx->programs);
    for (int i = atomic_load(&ctx->n_side_queues); i >= 0 && ctx->queue; --i) {
        clReleaseCommandQueue(attncl__queue(ctx, i));
        attncl__object_released(OBJECT_QUEUE);
    }
    if (ctx->cl) {
        clReleaseContext(ctx->cl);
        attncl__object_released(OBJECT_CONTEXT);
    }
    attncl__cache_close(ctx->cache);
    attncl__free(ctx->cache_directory);
    attncl__tuning_free(ctx->caps.tuned);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->probe_lock);
    attncl__free(ctx->verdicts);
    attncl__free(ctx);
}

attncl_status attncl__check_precision(attncl_precision precision)
{
    REQUIRE((unsigned)precision <= ATTNCL_PRECISION_BF16, ATTNCL_ERR_ARGUMENT,
            "precision is %d, it can be 0 to %d", (int)precision, ATTNCL_PRECISION_BF16);
    return ATTNCL_OK;
}

static attncl_status read_options(const attncl_context_options *given, attncl_context_options *ret)
{
    *ret = (attncl_context_options)ATTNCL_CONTEXT_OPTIONS_INIT;
    if (given)
        TRY(STRUCT_READ(attncl_context_options, ret, given));
    return attncl__check_precision(ret->precision);
}

static attncl_status new_context(const attncl_context_options *options, attncl_context **ret)
{
    attncl_context *ctx = attncl__alloc_zero(sizeof *ctx);

    REQUIRE(ctx, ATTNCL_ERR_NO_MEMORY, "a context");
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_init(&ctx->probe_lock, NULL);
    ctx->created_s = attncl__clock_seconds();
    ctx->pid = getpid();
    ctx->ignore_environment = options->ignore_environment != 0;
    ctx->compile_progress = options->compile_progress;
    ctx->progress_user = options->user;
    *ret = ctx;
    return ctx->ignore_environment ? ATTNCL_OK : attncl__env_check();
}

// The steps that need the device and the queue.
static attncl_status finish_context(attncl_context *ctx, const attncl_context_options *options,
                                    bool tunes)
{
    TRY(attncl__caps_fill(ctx->device, &ctx->info, attncl__context_env(ctx, ENV_VARIANT),
                          &ctx->caps));
    TRY(attncl__programs_create(&ctx->programs));
    attncl__log(ATTNCL_LOG_INFO, "device %d:%d %s (%s), %s kernel variants", ctx->info.platform,
                ctx->info.device, ctx->info.name, ctx->info.platform_name,
                ctx->caps.variant == VARIANT_CPU ? "CPU" : "GPU");
    attncl__caps_set_precision(&ctx->caps, options->precision);
    const struct tuning_key key = {ctx->info.name, ctx->info.driver_version,
                                   ctx->ignore_environment};
    TRY(attncl__tuning_check_file(&key, tunes));
    ctx->caps.tuned = attncl__tuning_load(&key);
    ctx->cache_directory = attncl__cache_find_directory(ctx, options->cache_dir);
    ctx->cache = attncl__cache_open(ctx);
    attncl__verdicts_load(ctx);
    return ATTNCL_OK;
}

static attncl_status open_device(attncl_context *ctx, const struct device_entry *entry,
                                 bool profile)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)entry->platform, 0};
    cl_int code = CL_SUCCESS;

    ctx->device = entry->id;
    ctx->info = entry->info;
    ctx->cl = clCreateContext(properties, 1, &ctx->device, NULL, NULL, &code);
    TRY(CL_CODE(code, "clCreateContext"));
    attncl__object_created(OBJECT_CONTEXT);
    ctx->profile = profile;
    return attncl__queue_create(ctx, &ctx->queue);
}

attncl_status attncl__context_create(const attncl_context_options *options, bool tunes,
                                     attncl_context **context_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_context *ctx = NULL;
    struct device_list list = {0};
    attncl_context_options opts = ATTNCL_CONTEXT_OPTIONS_INIT;
    size_t index = 0;

    REQUIRE(context_ret, ATTNCL_ERR_ARGUMENT, "context_ret is NULL");
    TRY(read_options(options, &opts));
    REQUIRE(!opts.device || *opts.device, ATTNCL_ERR_ARGUMENT,
            "the device is \"\", it can be gpu, cpu, PLATFORM:DEVICE or part of a name");
    TRY_DONE(new_context(&opts, &ctx));
    TRY_DONE(attncl__devices_list(&list));
    TRY_DONE(attncl__device_select(
        &list, opts.device ? opts.device : attncl__context_env(ctx, ENV_DEVICE), &index));
    TRY_DONE(open_device(ctx, &list.entries[index], opts.profile != 0));
    TRY_DONE(finish_context(ctx, &opts, tunes));
    *context_ret = ctx;
    ctx = NULL;

done:
    release_context(ctx);
    attncl__devices_free(&list);
    return status;
}

attncl_status attncl_context_create(const attncl_context_options *options,
                                    attncl_context **context_ret)
{
    return attncl__context_create(options, false, context_ret);
}

static attncl_status check_queue(cl_context cl, cl_device_id device, cl_command_queue queue,
                                 bool *profile_ret)
{
    cl_command_queue_properties properties = 0;
    cl_context queue_cl = NULL;
    cl_device_id queue_device = NULL;

    TRY_CL(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof queue_cl, &queue_cl, NULL));
    REQUIRE(queue_cl == cl, ATTNCL_ERR_ARGUMENT, "the queue belongs to another OpenCL context");
    TRY_CL(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof queue_device, &queue_device, NULL));
    REQUIRE(queue_device == device, ATTNCL_ERR_ARGUMENT, "the queue belongs to another device");
    TRY_CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    REQUIRE(!(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), ATTNCL_ERR_ARGUMENT,
            "the queue is out-of-order, an in-order queue is needed");
    *profile_ret = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    return ATTNCL_OK;
}

// The device's indices are -1 when it is not in the list (a sub-device).
static attncl_status describe_adopted_device(attncl_context *ctx)
{
    struct device_list list = {0};

    TRY(attncl__device_describe(ctx->device, &ctx->info));
    ctx->info.platform = ctx->info.device = -1;
    TRY(attncl__devices_list(&list));
    for (size_t i = 0; i < list.n; ++i)
        if (list.entries[i].id == ctx->device)
            ctx->info = list.entries[i].info;
    attncl__devices_free(&list);
    return ATTNCL_OK;
}

attncl_status attncl_context_adopt(cl_context cl, cl_device_id device, cl_command_queue queue,
                                   const attncl_context_options *options,
                                   attncl_context **context_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_context *ctx = NULL;
    attncl_context_options opts = ATTNCL_CONTEXT_OPTIONS_INIT;
    bool profile = false;

    REQUIRE(cl && device && queue && context_ret, ATTNCL_ERR_ARGUMENT,
            "cl, device, queue or context_ret is NULL");
    TRY(read_options(options, &opts));
    TRY(check_queue(cl, device, queue, &profile));
    TRY_DONE(new_context(&opts, &ctx));
    ctx->profile = profile;
    ctx->device = device;
    TRY_DONE(describe_adopted_device(ctx));
    TRY_DONE(CL_CALL(clRetainContext(cl)));
    ctx->cl = cl;
    attncl__object_created(OBJECT_CONTEXT);
    TRY_DONE(CL_CALL(clRetainCommandQueue(queue)));
    ctx->queue = queue;
    attncl__object_created(OBJECT_QUEUE);
    TRY_DONE(finish_context(ctx, &opts, false));
    *context_ret = ctx;
    ctx = NULL;

done:
    release_context(ctx);
    return status;
}

attncl_status attncl_context_destroy(attncl_context *context)
{
    if (!context)
        return ATTNCL_OK;
    TRY(attncl__context_check_usable(context));
    pthread_mutex_lock(&context->lock);
    const long n = context->n_children;
    const char *kind = context->last_child_kind;
    pthread_mutex_unlock(&context->lock);
    REQUIRE(n == 0, ATTNCL_ERR_STATE,
            "the context still has %ld object%s, the last one created is a %s", n,
            n == 1 ? "" : "s", kind);
    // Some drivers lose queued work when the queue is released before it is done.
    for (int i = atomic_load(&context->n_side_queues); i >= 0; --i) {
        const cl_int code = clFinish(attncl__queue(context, i));
        if (code != CL_SUCCESS) // too late for a caller to act on
            attncl__log(ATTNCL_LOG_WARN,
                        "a context is destroyed whose last commands failed: clFinish: %s",
                        attncl__cl_name(code));
    }
    release_context(context);
    return ATTNCL_OK;
}
