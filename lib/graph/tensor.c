// SPDX-License-Identifier: MIT
//
// Device tensors: memory that outlives a graph.

#include "base/alloc.h"
#include "base/quantised.h"
#include "device/clerr.h"
#include "graph/nodes.h"
#include "launch/command_list.h"

struct attncl_tensor {
    attncl_context *ctx;
    struct tensor_desc desc;
    struct storage storage;
};

struct tensor_desc attncl__tensor_desc(const attncl_tensor *t)
{
    return t->desc;
}

struct storage *attncl__tensor_storage(attncl_tensor *t)
{
    return &t->storage;
}

attncl_context *attncl__tensor_context(const attncl_tensor *t)
{
    return t->ctx;
}

enum { CHUNK = 1 << 20 }; // elements, few enough for a CPU's cache

static bool needs_conversion(const struct tensor_source *source, attncl_dtype dtype)
{
    return source->dtype != dtype || source->dtype == ATTNCL_U8; // U8 is normalised to 0 and 1
}

// Writes the source's elements [first, first + n) to `to`, as `dtype`.  raw: memory for n elements to convert.
static attncl_status get_elements(const struct tensor_source *source, size_t first, size_t n,
                                  void *raw, attncl_dtype dtype, void *to)
{
    const size_t bytes_each = attncl_dtype_bytes(source->dtype), offset = first * bytes_each;
    const bool converts = needs_conversion(source, dtype);

    if (source->read)
        TRY(source->read(source->from, offset, n * bytes_each, converts ? raw : to));
    const void *from = source->read ? raw : (const char *)source->from + offset;
    return converts ? attncl__convert(source->dtype, from, dtype, to, n) : ATTNCL_OK;
}

// mapped: the tensor's memory; NULL: it cannot be mapped.  Then a chunk is read or converted while the one before it is
// transferred.
static attncl_status upload(attncl_tensor *t, const struct tensor_source *source, char *mapped)
{
    attncl_status status = ATTNCL_OK;
    const size_t count = (size_t)attncl__desc_count(&t->desc);
    const size_t to_bytes = attncl_dtype_bytes(t->desc.dtype);
    const bool converts = needs_conversion(source, t->desc.dtype);
    const size_t max_n = count < CHUNK ? count : CHUNK;
    char *raw = NULL, *chunks = NULL; // `chunks` holds two

    if (!converts && !source->read && !mapped)
        return attncl__buffer_write(t->ctx, t->storage.mem, 0, source->from, t->storage.bytes);
    if (!converts && !source->read) {
        memcpy(mapped, source->from, t->storage.bytes);
        return ATTNCL_OK;
    }
    if (converts && source->read)
        raw = attncl__alloc_array(max_n, attncl_dtype_bytes(source->dtype));
    if (!mapped)
        chunks = attncl__alloc_array(2 * max_n, to_bytes);
    if ((converts && source->read && !raw) || (!mapped && !chunks))
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu elements of a tensor", 2 * max_n));
    for (size_t i = 0; i < count; i += max_n) {
        const size_t n = count - i < max_n ? count - i : max_n;
        char *to = mapped ? mapped + i * to_bytes : chunks + i / max_n % 2 * max_n * to_bytes;
        TRY_DONE(get_elements(source, i, n, raw, t->desc.dtype, to));
        if (mapped)
            continue;
        TRY_DONE(attncl__queue_finish(t->ctx));
        TRY_DONE(
            attncl__buffer_write_queued(t->ctx, t->storage.mem, i * to_bytes, to, n * to_bytes));
    }
    if (!mapped)
        status = attncl__queue_finish(t->ctx);
done:
    if (status != ATTNCL_OK && !mapped)
        attncl__queue_drain(t->ctx); // a transfer may still read a chunk
    attncl__free(chunks);
    attncl__free(raw);
    return status;
}

static cl_int close_block(attncl_context *ctx, struct tensor_block *block)
{
    const cl_int code =
        block->mapped ? attncl__buffer_unmap(ctx, block->mem, block->mapped) : CL_SUCCESS;
    attncl__buffer_release(&block->mem);
    *block = (struct tensor_block){0};
    return code;
}

attncl_status attncl__tensor_block_end(attncl_context *ctx, struct tensor_block *block)
{
    return CL_CODE(close_block(ctx, block), "clEnqueueUnmapMemObject");
}

void attncl__tensor_block_drop(attncl_context *ctx, struct tensor_block *block)
{
    (void)close_block(ctx, block);
}

// Takes the next part of the block, or of a new block if it is full.  *mapped_ret: the part in host memory.
static attncl_status reserve(attncl_context *ctx, struct tensor_block *block, size_t bytes,
                             cl_mem *ret, char **mapped_ret)
{
    const size_t normal = (size_t)64 << 20; // untouched pages take no physical memory
    const uint64_t max = ctx->caps.max_buffer_bytes ? ctx->caps.max_buffer_bytes : UINT64_MAX;
    const size_t align = ctx->caps.align_bytes, aligned = (bytes + align - 1) & ~(align - 1);

    if (block->bytes - block->used < aligned) {
        TRY(attncl__tensor_block_end(ctx, block)); // its tensors keep the memory
        const size_t size = aligned > normal || max < normal ? aligned : normal;
        void *mapped;
        TRY(attncl__buffer_create_zeroed(ctx, size, true, &block->mem));
        TRY(attncl__buffer_map(ctx, block->mem, size, &mapped));
        block->mapped = mapped;
        block->bytes = size;
    }
    TRY(attncl__buffer_create_part(ctx, block->mem, block->used, bytes, ret));
    *mapped_ret = block->mapped + block->used;
    block->used += aligned;
    return ATTNCL_OK;
}

attncl_status attncl__tensor_create_from(attncl_context *context, attncl_dtype dtype, int rank,
                                         const int64_t *dim, const struct tensor_source *source,
                                         attncl_tensor **tensor_ret)
{
    const bool quantised = attncl__is_quantised(dtype);

    REQUIRE(dtype == ATTNCL_F32 || attncl__is_16_bit(dtype) || dtype == ATTNCL_I32 ||
                dtype == ATTNCL_U8 || quantised,
            ATTNCL_ERR_DTYPE, "a tensor on the device is F32, F16, BF16, I32, U8, Q8 or Q4, not %s",
            attncl_dtype_name(dtype));
    REQUIRE(quantised || attncl__is_quantised(source->dtype)
                ? source->dtype == dtype && !source->read
                : true,
            ATTNCL_ERR_DTYPE, "%s does not convert to %s", attncl_dtype_name(source->dtype),
            attncl_dtype_name(dtype));
    TRY(attncl__context_check_usable(context));

    attncl_status status = ATTNCL_OK;
    attncl_tensor *t = attncl__alloc_zero(sizeof *t);
    REQUIRE(t, ATTNCL_ERR_NO_MEMORY, "tensor");
    t->ctx = context;
    attncl__context_add_child(context, "tensor");

    TRY_DONE(attncl__desc_make(dtype, rank, dim, &t->desc));
    t->storage.bytes = attncl__desc_bytes(&t->desc);
    const size_t padded = (t->storage.bytes + 7) & ~(size_t)3; // bytes are zeroed in whole words
    char *mapped = NULL;
    if (!source->read && !source->from)
        TRY_DONE(attncl__buffer_create_zeroed(context, padded, false, &t->storage.mem));
    else if (source->block && context->caps.uses_host_memory)
        TRY_DONE(reserve(context, source->block, padded, &t->storage.mem, &mapped));
    else
        TRY_DONE(attncl__buffer_create(context, padded, &t->storage.mem));
    if ((source->read || source->from) && t->storage.bytes > 0)
        TRY_DONE(upload(t, source, mapped));

    *tensor_ret = t;
    t = NULL;
done:
    attncl_tensor_destroy(t);
    return status;
}

attncl_status attncl_tensor_create(attncl_context *context, attncl_dtype dtype, int rank,
                                   const int64_t *dim, attncl_dtype data_dtype, const void *data,
                                   attncl_tensor **tensor_ret)
{
    REQUIRE(context && tensor_ret && (dim || rank == 0), ATTNCL_ERR_ARGUMENT,
            "context, dim or tensor_ret is NULL");
    return attncl__tensor_create_from(context, dtype, rank, dim,
                                      &(struct tensor_source){data_dtype, NULL, data, NULL},
                                      tensor_ret);
}

void attncl_tensor_destroy(attncl_tensor *tensor)
{
    if (!tensor)
        return;
    attncl__buffer_release(&tensor->storage.mem);
    attncl__context_remove_child(tensor->ctx);
    attncl__free(tensor);
}

attncl_status attncl__tensor_read_part(attncl_tensor *tensor, size_t offset, void *data,
                                       size_t bytes)
{
    assert(offset <= tensor->storage.bytes && bytes <= tensor->storage.bytes - offset);
    TRY(attncl__context_check_usable(tensor->ctx));
    return bytes ? attncl__buffer_read(tensor->ctx, tensor->storage.mem, offset, data, bytes)
                 : ATTNCL_OK;
}

attncl_status attncl__tensor_write_part(attncl_tensor *tensor, size_t offset, const void *data,
                                        size_t bytes)
{
    assert(offset <= tensor->storage.bytes && bytes <= tensor->storage.bytes - offset);
    TRY(attncl__context_check_usable(tensor->ctx));
    return bytes ? attncl__buffer_write(tensor->ctx, tensor->storage.mem, offset, data, bytes)
                 : ATTNCL_OK;
}

attncl_status attncl_tensor_read(attncl_tensor *tensor, void *data, size_t bytes)
{
    REQUIRE(tensor && data, ATTNCL_ERR_ARGUMENT, "tensor or data is NULL");
    REQUIRE(bytes == tensor->storage.bytes, ATTNCL_ERR_ARGUMENT,
            "the tensor has %zu bytes, data has capacity for %zu", tensor->storage.bytes, bytes);
    return attncl__tensor_read_part(tensor, 0, data, bytes);
}

attncl_status attncl_tensor_write(attncl_tensor *tensor, const void *data, size_t bytes)
{
    REQUIRE(tensor && data, ATTNCL_ERR_ARGUMENT, "tensor or data is NULL");
    REQUIRE(bytes == tensor->storage.bytes, ATTNCL_ERR_ARGUMENT,
            "the tensor has %zu bytes, data has %zu", tensor->storage.bytes, bytes);
    return attncl__tensor_write_part(tensor, 0, data, bytes);
}

attncl_status attncl__tensor_clear(attncl_tensor *t)
{
    TRY(attncl__context_check_usable(t->ctx));
    return attncl__buffer_fill(t->ctx, t->storage.mem, 0, 0, (t->storage.bytes + 3) & ~(size_t)3);
}
