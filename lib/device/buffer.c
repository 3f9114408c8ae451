// SPDX-License-Identifier: MIT
//
// Device memory.

#define _DEFAULT_SOURCE // madvise
#include <assert.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "device/clerr.h"
#include "device/context.h"

// OpenCL has no empty buffers; they get this size.
enum { MIN_BYTES = 16 };

static attncl_status check_size(const attncl_context *ctx, size_t bytes)
{
    REQUIRE(!ctx->caps.max_buffer_bytes || bytes <= ctx->caps.max_buffer_bytes,
            ATTNCL_ERR_DEVICE_MEMORY,
            "a buffer of %zu bytes is needed, the device allows %llu at most", bytes,
            (unsigned long long)ctx->caps.max_buffer_bytes);
    return ATTNCL_OK;
}

// memory: the buffer's host memory; NULL: the driver allocates it.
static attncl_status create(attncl_context *ctx, size_t bytes, void *memory, cl_mem *ret)
{
    const size_t size = bytes < MIN_BYTES ? MIN_BYTES : bytes;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (memory ? CL_MEM_USE_HOST_PTR : 0);
    cl_int code = CL_SUCCESS;

    TRY(check_size(ctx, size));
    cl_mem mem = clCreateBuffer(ctx->cl, flags, size, memory, &code);
    TRY(CL_CODE(code, "clCreateBuffer"));
    attncl__object_created(OBJECT_BUFFER);
    *ret = mem;
    return ATTNCL_OK;
}

attncl_status attncl__buffer_create(attncl_context *ctx, size_t bytes, cl_mem *ret)
{
    return create(ctx, bytes, NULL, ret);
}

static void CL_CALLBACK free_memory(cl_mem mem, void *memory)
{
    (void)mem;
    attncl__free_for_driver(memory);
}

attncl_status attncl__buffer_create_zeroed(attncl_context *ctx, size_t bytes, bool is_dense,
                                           cl_mem *ret)
{
    const size_t huge_page = (size_t)2 << 20;
    const size_t align =
        is_dense ? huge_page : 4096; // drivers use page-aligned memory without a copy
    attncl_status status = ATTNCL_OK;
    cl_mem mem = NULL;
    char *memory = NULL;

    if (!ctx->caps.uses_host_memory) {
        TRY_DONE(create(ctx, bytes, NULL, &mem));
        TRY_DONE(attncl__buffer_fill(ctx, mem, 0, 0, bytes));
    } else {
        TRY_DONE(check_size(ctx, bytes));
        memory = attncl__alloc_for_driver(bytes + MIN_BYTES + align);
        REQUIRE(memory, ATTNCL_ERR_NO_MEMORY, "a buffer of %zu bytes", bytes);
        char *start = memory + (-(uintptr_t)memory & (align - 1));
        TRY_DONE(create(ctx, bytes, start, &mem));
        if (is_dense) // without huge pages in the system, small ones are used
            (void)madvise(start, bytes & ~(huge_page - 1), MADV_HUGEPAGE);
        TRY_DONE(CL_CODE(clSetMemObjectDestructorCallback(mem, free_memory, memory),
                         "clSetMemObjectDestructorCallback"));
        memory = NULL; // owned by the callback now
    }
    *ret = mem;
    mem = NULL;
done:
    attncl__buffer_release(&mem);
    attncl__free_for_driver(memory);
    return status;
}

attncl_status attncl__buffer_create_part(attncl_context *ctx, cl_mem parent, size_t origin,
                                         size_t bytes, cl_mem *ret)
{
    // An empty part may begin at the parent's end, where a region cannot, so it is put at the start.
    const cl_buffer_region region = {bytes ? origin : 0, bytes ? bytes : 1};
    cl_int code = CL_SUCCESS;

    (void)ctx; // used by assert only
    assert(origin % ctx->caps.align_bytes == 0);
    cl_mem mem =
        clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    TRY(CL_CODE(code, "clCreateSubBuffer"));
    attncl__object_created(OBJECT_BUFFER);
    *ret = mem;
    return ATTNCL_OK;
}

attncl_status attncl__buffer_retain(cl_mem mem, cl_mem *ret)
{
    TRY_CL(clRetainMemObject(mem));
    attncl__object_created(OBJECT_BUFFER);
    *ret = mem;
    return ATTNCL_OK;
}

void attncl__buffer_release(cl_mem *mem)
{
    if (!*mem)
        return;
    clReleaseMemObject(*mem);
    attncl__object_released(OBJECT_BUFFER);
    *mem = NULL;
}

attncl_status attncl__buffer_write(attncl_context *ctx, cl_mem mem, size_t offset, const void *data,
                                   size_t bytes)
{
    if (!bytes)
        return ATTNCL_OK;
    return attncl__check_transfer(
        ctx, clEnqueueWriteBuffer(ctx->queue, mem, CL_TRUE, offset, bytes, data, 0, NULL, NULL),
        "clEnqueueWriteBuffer");
}

attncl_status attncl__buffer_write_queued(attncl_context *ctx, cl_mem mem, size_t offset,
                                          const void *data, size_t bytes)
{
    if (bytes && ctx->caps.blocking_writes)
        return attncl__buffer_write(ctx, mem, offset, data, bytes);
    if (bytes)
        TRY_CL(clEnqueueWriteBuffer(ctx->queue, mem, CL_FALSE, offset, bytes, data, 0, NULL, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__buffer_map(attncl_context *ctx, cl_mem mem, size_t bytes, void **ret)
{
    cl_int code = CL_SUCCESS;

    *ret = clEnqueueMapBuffer(ctx->queue, mem, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes, 0,
                              NULL, NULL, &code);
    return attncl__check_transfer(ctx, code, "clEnqueueMapBuffer");
}

cl_int attncl__buffer_unmap(attncl_context *ctx, cl_mem mem, void *mapped)
{
    return clEnqueueUnmapMemObject(ctx->queue, mem, mapped, 0, NULL, NULL);
}

attncl_status attncl__buffer_read(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                  size_t bytes)
{
    if (!bytes)
        return ATTNCL_OK;
    TRY(attncl__side_queues_finish(ctx));
    return attncl__check_transfer(
        ctx, clEnqueueReadBuffer(ctx->queue, mem, CL_TRUE, offset, bytes, data, 0, NULL, NULL),
        "clEnqueueReadBuffer");
}

attncl_status attncl__buffer_read_queued(attncl_context *ctx, cl_mem mem, size_t offset, void *data,
                                         size_t bytes, cl_event *event_ret)
{
    cl_event event = NULL;

    TRY_CL(clEnqueueReadBuffer(ctx->queue, mem, CL_FALSE, offset, bytes, data, 0, NULL, &event));
    attncl__object_created(OBJECT_EVENT);
    *event_ret = event;
    return ATTNCL_OK;
}

// Translates rows of a sub-buffer into rows of its parent: PoCL 3.1 crashes when it copies rectangles of sub-buffers.
static attncl_status find_parent(const struct buffer_rows *rows, cl_mem *ret, size_t origin[3])
{
    cl_mem parent = NULL;
    size_t start = 0;

    TRY_CL(
        clGetMemObjectInfo(rows->mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &parent, NULL));
    TRY_CL(clGetMemObjectInfo(rows->mem, CL_MEM_OFFSET, sizeof start, &start, NULL));
    *ret = parent ? parent : rows->mem;
    origin[0] = start + rows->offset;
    return ATTNCL_OK;
}

attncl_status attncl__buffer_copy_rows(attncl_context *ctx, const struct buffer_rows *from,
                                       const struct buffer_rows *to, size_t bytes, size_t n)
{
    size_t from_origin[3] = {0}, to_origin[3] = {0};
    const size_t region[3] = {bytes, n, 1};
    cl_mem source = NULL, target = NULL;

    TRY(find_parent(from, &source, from_origin));
    TRY(find_parent(to, &target, to_origin));
    TRY_CL(clEnqueueCopyBufferRect(ctx->queue, source, target, from_origin, to_origin, region,
                                   from->pitch, 0, to->pitch, 0, 0, NULL, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__buffer_fill(attncl_context *ctx, cl_mem mem, uint32_t word, size_t offset,
                                  size_t bytes)
{
    assert(offset % sizeof word == 0 && bytes % sizeof word == 0);
    if (bytes)
        TRY_CL(
            clEnqueueFillBuffer(ctx->queue, mem, &word, sizeof word, offset, bytes, 0, NULL, NULL));
    return ATTNCL_OK;
}

attncl_status attncl__buffer_query(attncl_context *ctx, cl_mem mem, size_t *bytes_ret,
                                   cl_mem_flags *flags_ret)
{
    cl_context owner = NULL;

    TRY_CL(clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof owner, &owner, NULL));
    REQUIRE(owner == ctx->cl, ATTNCL_ERR_ARGUMENT, "the buffer belongs to another OpenCL context");
    TRY_CL(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof *bytes_ret, bytes_ret, NULL));
    TRY_CL(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof *flags_ret, flags_ret, NULL));
    return ATTNCL_OK;
}
