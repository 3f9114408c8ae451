// SPDX-License-Identifier: MIT
//
// Device tensors: memory that outlives a graph.

#include "base/alloc.h"
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

static attncl_status upload(attncl_tensor *t, attncl_dtype data_dtype, const void *data)
{
    attncl_status status = ATTNCL_OK;
    const size_t bytes = t->storage.bytes;
    const size_t count = (size_t)attncl__desc_count(&t->desc);
    void *converted = NULL;

    if (!data)
        return attncl__buffer_fill(t->ctx, t->storage.mem, 0, 0, (bytes + 3) & ~(size_t)3);
    if (data_dtype == t->desc.dtype && data_dtype != ATTNCL_U8)
        return attncl__buffer_write(t->ctx, t->storage.mem, 0, data, bytes);

    converted = attncl__alloc(bytes);
    REQUIRE(converted, ATTNCL_ERR_NO_MEMORY, "%zu bytes to convert a tensor", bytes);
    TRY_DONE(attncl__convert(data_dtype, data, t->desc.dtype, converted, count));
    TRY_DONE(attncl__buffer_write(t->ctx, t->storage.mem, 0, converted, bytes));
done:
    attncl__free(converted);
    return status;
}

enum { CHUNK = 1 << 20 }; // elements, few enough for a processor's cache

// Reads a chunk while the one before is transferred.
static attncl_status upload_chunks(attncl_tensor *t, const struct tensor_source *source)
{
    attncl_status status = ATTNCL_OK;
    const size_t count = (size_t)attncl__desc_count(&t->desc), most = count < CHUNK ? count : CHUNK;
    const size_t from_bytes = attncl_dtype_bytes(source->dtype);
    const size_t to_bytes = attncl_dtype_bytes(t->desc.dtype);
    const bool same = source->dtype == t->desc.dtype && source->dtype != ATTNCL_U8;
    void *raw = same ? NULL : attncl__alloc_array(most, from_bytes);
    char *chunks = attncl__alloc_array(2 * most, to_bytes), *chunk = chunks;

    if (!chunks || (!same && !raw))
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu elements of a tensor", 2 * most));
    for (size_t i = 0; i < count; i += most) {
        const size_t n = count - i < most ? count - i : most;
        TRY_DONE(source->read(source->from, i * from_bytes, n * from_bytes, same ? chunk : raw));
        if (!same)
            TRY_DONE(attncl__convert(source->dtype, raw, t->desc.dtype, chunk, n));
        TRY_DONE(attncl__queue_finish(t->ctx));
        TRY_DONE(
            attncl__buffer_write_queued(t->ctx, t->storage.mem, i * to_bytes, chunk, n * to_bytes));
        chunk = chunk == chunks ? chunks + most * to_bytes : chunks;
    }
    status = attncl__queue_finish(t->ctx);

done:
    if (status != ATTNCL_OK)
        attncl__queue_drain(t->ctx); // which may still read a chunk
    attncl__free(chunks);
    attncl__free(raw);
    return status;
}

attncl_status attncl__tensor_create_from(attncl_context *context, attncl_dtype dtype, int rank,
                                         const int64_t *dim, const struct tensor_source *source,
                                         attncl_tensor **tensor_ret)
{
    REQUIRE(dtype == ATTNCL_F32 || attncl__is_16_bit(dtype) || dtype == ATTNCL_I32 ||
                dtype == ATTNCL_U8,
            ATTNCL_ERR_DTYPE, "a tensor on the device is F32, F16, BF16, I32 or U8, not %s",
            attncl_dtype_name(dtype));
    TRY(attncl__context_usable(context));

    attncl_status status = ATTNCL_OK;
    attncl_tensor *t = attncl__alloc_zero(sizeof *t);
    REQUIRE(t, ATTNCL_ERR_NO_MEMORY, "tensor");
    t->ctx = context;
    attncl__context_add_child(context, "tensor");

    TRY_DONE(attncl__desc_make(dtype, rank, dim, &t->desc));
    t->storage.bytes = attncl__desc_bytes(&t->desc);
    // A word more than asked, so that a byte tensor can be zeroed in whole words.
    TRY_DONE(attncl__buffer_create(context, t->storage.bytes + 4, &t->storage.mem));
    if (t->storage.bytes > 0)
        TRY_DONE(source->read ? upload_chunks(t, source) : upload(t, source->dtype, source->from));

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
                                      &(struct tensor_source){data_dtype, NULL, data}, tensor_ret);
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
    TRY(attncl__context_usable(tensor->ctx));
    return bytes ? attncl__buffer_read(tensor->ctx, tensor->storage.mem, offset, data, bytes)
                 : ATTNCL_OK;
}

attncl_status attncl__tensor_write_part(attncl_tensor *tensor, size_t offset, const void *data,
                                        size_t bytes)
{
    assert(offset <= tensor->storage.bytes && bytes <= tensor->storage.bytes - offset);
    TRY(attncl__context_usable(tensor->ctx));
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
    TRY(attncl__context_usable(t->ctx));
    return attncl__buffer_fill(t->ctx, t->storage.mem, 0, 0, (t->storage.bytes + 3) & ~(size_t)3);
}
