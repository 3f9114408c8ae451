// SPDX-License-Identifier: MIT
//
// cl_khr_command_buffer, provisional up to 0.9.8, which is 1.0.  The functions that are used here are called in the same
// way in all versions; those that record copies are not.

#include "device/command_buffer.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "device/context.h"
#include "device/platform.h"

// Of OpenCL 3.0 and of the extension.
enum {
    EXTENSIONS_WITH_VERSION = 0x1060,
    COMMAND_BUFFER_CAPABILITIES = 0x12A9,
    CAPABILITY_SIMULTANEOUS_USE = 1 << 2,
    COMMAND_BUFFER_FLAGS = 0x1293,
    FLAG_SIMULTANEOUS_USE = 1 << 0,
};

#define VERSION(major, minor, patch)                                                               \
    ((cl_uint)(major) << 22 | (cl_uint)(minor) << 12 | (cl_uint)(patch))

// A run may enqueue a buffer that the one before it has enqueued.  Up to 0.9.7 that is simultaneous use, which a device need
// not have; from 0.9.8 on that is only where nothing orders the two, as an in-order queue does.
static const cl_ulong simultaneous[] = {COMMAND_BUFFER_FLAGS, FLAG_SIMULTANEOUS_USE, 0};

struct name_version {
    cl_uint version;
    char name[64];
};

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"clCreateCommandBufferKHR", offsetof(struct command_buffer_calls, create)},
    {"clCommandNDRangeKernelKHR", offsetof(struct command_buffer_calls, add_kernel)},
    {"clFinalizeCommandBufferKHR", offsetof(struct command_buffer_calls, finalize)},
    {"clEnqueueCommandBufferKHR", offsetof(struct command_buffer_calls, enqueue)},
    {"clReleaseCommandBufferKHR", offsetof(struct command_buffer_calls, release)},
};

static bool is_known(cl_uint version)
{
    return (version >= VERSION(0, 9, 0) && version <= VERSION(0, 9, 8)) ||
           (version >= VERSION(1, 0, 0) && version < VERSION(1, 1, 0));
}

// 0: the device does not have the extension.
static attncl_status find_version(cl_device_id device, cl_uint *ret)
{
    attncl_status status = ATTNCL_OK;
    struct name_version *list = NULL;
    size_t bytes = 0;

    *ret = 0;
    TRY_CL(clGetDeviceInfo(device, EXTENSIONS_WITH_VERSION, 0, NULL, &bytes));
    list = attncl__alloc(bytes);
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "the versions of extensions");
    TRY_DONE(CL_CALL(clGetDeviceInfo(device, EXTENSIONS_WITH_VERSION, bytes, list, NULL)));
    for (size_t i = 0; i < bytes / sizeof *list; ++i)
        if (strncmp(list[i].name, "cl_khr_command_buffer", sizeof list[i].name) == 0)
            *ret = list[i].version;
done:
    attncl__free(list);
    return status;
}

static attncl_status find_functions(cl_device_id device, struct command_buffer_calls *ret,
                                    const char **missing_ret)
{
    cl_platform_id platform = NULL;

    TRY(DEVICE_ANSWER(device, CL_DEVICE_PLATFORM, &platform));
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
        void *function = clGetExtensionFunctionAddressForPlatform(platform, functions[i].name);
        // C has no cast from an object to a function.
        memcpy((char *)ret + functions[i].offset, &function, sizeof function);
        if (!function)
            *missing_ret = functions[i].name;
    }
    return ATTNCL_OK;
}

attncl_status attncl__command_buffers_find(const attncl_context *ctx,
                                           struct command_buffer_calls *ret,
                                           const char **missing_ret)
{
    cl_bitfield capabilities = 0;
    cl_uint version = 0;

    *missing_ret = "cl_khr_command_buffer";
    // Before OpenCL 3.0 no query tells an extension's version.
    if (strncmp(ctx->info.opencl_version, "OpenCL 3", 8) == 0)
        TRY(find_version(ctx->device, &version));
    if (!version)
        return ATTNCL_OK;
    *missing_ret = "a version of cl_khr_command_buffer that is known";
    if (!is_known(version))
        return ATTNCL_OK;
    ret->properties = NULL;
    if (version < VERSION(0, 9, 8)) {
        *missing_ret = "command buffers that are enqueued again before they have run";
        TRY(DEVICE_ANSWER(ctx->device, COMMAND_BUFFER_CAPABILITIES, &capabilities));
        if (!(capabilities & CAPABILITY_SIMULTANEOUS_USE))
            return ATTNCL_OK;
        ret->properties = simultaneous;
    }
    *missing_ret = NULL;
    return find_functions(ctx->device, ret, missing_ret);
}

attncl_status attncl__command_buffer_create(attncl_context *ctx, struct command_buffer **ret)
{
    const struct command_buffer_calls *calls = &ctx->command_buffers.calls;
    cl_int code = CL_SUCCESS;

    *ret = calls->create(1, &ctx->queue, calls->properties, &code);
    TRY(CL_CODE(code, "clCreateCommandBufferKHR"));
    attncl__object_created(OBJECT_COMMAND_BUFFER);
    return ATTNCL_OK;
}

// The queue must be NULL: it is the buffer's.
attncl_status attncl__command_buffer_add(attncl_context *ctx, struct command_buffer *buffer,
                                         cl_kernel kernel, cl_uint n_axes, const size_t *global,
                                         const size_t *local)
{
    return CL_CODE(ctx->command_buffers.calls.add_kernel(buffer, NULL, NULL, kernel, n_axes, NULL,
                                                         global, local, 0, NULL, NULL, NULL),
                   "clCommandNDRangeKernelKHR");
}

attncl_status attncl__command_buffer_finalize(attncl_context *ctx, struct command_buffer *buffer)
{
    return CL_CODE(ctx->command_buffers.calls.finalize(buffer), "clFinalizeCommandBufferKHR");
}

attncl_status attncl__command_buffer_enqueue(attncl_context *ctx, struct command_buffer *buffer,
                                             cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    TRY(CL_CODE(ctx->command_buffers.calls.enqueue(0, NULL, buffer, n_wait, wait, event),
                "clEnqueueCommandBufferKHR"));
    if (event && *event)
        attncl__object_created(OBJECT_EVENT);
    return ATTNCL_OK;
}

void attncl__command_buffer_release(attncl_context *ctx, struct command_buffer **buffer)
{
    if (!*buffer)
        return;
    ctx->command_buffers.calls.release(*buffer);
    attncl__object_released(OBJECT_COMMAND_BUFFER);
    *buffer = NULL;
}
