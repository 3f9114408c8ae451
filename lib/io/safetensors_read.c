// SPDX-License-Identifier: MIT
//
// Opens safetensors files, from disk or from memory, and reads their contents.

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "io/safetensors.h"

static size_t limit_foreign_bytes(uint64_t total)
{
    return total < ST_FOREIGN_BYTES ? (size_t)total : ST_FOREIGN_BYTES;
}

static attncl_status read_header(struct attncl_safetensors *file)
{
    attncl_status status = ATTNCL_OK;
    unsigned char first[ST_FOREIGN_BYTES];
    const size_t n = limit_foreign_bytes(file->file_bytes);
    size_t header_bytes;

    TRY(attncl__file_read(file->fd, first, n));
    TRY(attncl__st_read_header_bytes(first, n, file->file_bytes, &header_bytes));
    file->data_at = ST_LENGTH_BYTES + header_bytes;

    char *header = attncl__alloc(header_bytes);
    REQUIRE(header, ATTNCL_ERR_NO_MEMORY, "a header of %zu bytes", header_bytes);
    TRY_DONE(attncl__file_read_at(file->fd, ST_LENGTH_BYTES, header, header_bytes));
    TRY_DONE(attncl__st_read_header(file, header, header_bytes,
                                    (size_t)(file->file_bytes - file->data_at)));

done:
    attncl__free(header);
    return status;
}

// Called after the header was checked against the file's length.
static attncl_status allocate_data(struct attncl_safetensors *file, size_t bytes)
{
    file->data = attncl__alloc(bytes);
    REQUIRE(file->data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of tensors", bytes);
    for (size_t i = 0; i < file->n_tensors; ++i)
        file->tensor[i].array.data = file->data + file->tensor[i].begin;
    return ATTNCL_OK;
}

// Does not map the file, because a mapping faults when another process truncates it.
static attncl_status read_data(struct attncl_safetensors *file)
{
    const size_t bytes = (size_t)(file->file_bytes - file->data_at);

    TRY(allocate_data(file, bytes));
    TRY(attncl__file_read(file->fd, file->data, bytes));
    return attncl__st_check_size(file);
}

static attncl_status open_file(const char *path, bool with_data, attncl_safetensors **file_ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_safetensors *file = attncl__alloc_zero(sizeof *file);
    REQUIRE(file, ATTNCL_ERR_NO_MEMORY, "safetensors handle");

    file->fd = -1;
    TRY_DONE(attncl__file_open(path, &file->fd, &file->file_bytes));
    status = read_header(file);
    if (status == ATTNCL_OK && with_data)
        status = read_data(file);
    TRY_DONE(attncl__prefix_failure(status, "%s", path));
    if (with_data)
        attncl__file_close(&file->fd);
    *file_ret = file;
    file = NULL;

done:
    attncl_safetensors_close(file);
    return status;
}

attncl_status attncl_safetensors_open(const char *path, attncl_safetensors **file_ret)
{
    REQUIRE(path && file_ret, ATTNCL_ERR_ARGUMENT, "path or file_ret is NULL");
    return open_file(path, true, file_ret);
}

attncl_status attncl_safetensors_open_header(const char *path, attncl_safetensors **file_ret)
{
    REQUIRE(path && file_ret, ATTNCL_ERR_ARGUMENT, "path or file_ret is NULL");
    return open_file(path, false, file_ret);
}

attncl_status attncl__st_read(const attncl_safetensors *file, const attncl_array *array,
                              uint64_t offset, size_t bytes, void *to)
{
    const struct st_tensor *tensor = (const struct st_tensor *)array; // its first member

    assert(offset <= array->bytes && bytes <= array->bytes - offset);
    if (file->fd >= 0)
        return attncl__file_read_at(file->fd, file->data_at + tensor->begin + offset, to, bytes);
    if (bytes > 0)
        memcpy(to, (const char *)array->data + offset, bytes);
    return ATTNCL_OK;
}

attncl_status attncl_safetensors_read(const attncl_safetensors *file, const char *name, void *to,
                                      size_t bytes)
{
    REQUIRE(file && name && (to || bytes == 0), ATTNCL_ERR_ARGUMENT, "file, name or to is NULL");
    const attncl_array *a = attncl_safetensors_find(file, name);

    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "the file has no tensor %.200s", name);
    REQUIRE(bytes == a->bytes, ATTNCL_ERR_ARGUMENT, "tensor %.200s has %zu bytes, not %zu", name,
            a->bytes, bytes);
    return attncl__st_read(file, a, 0, bytes, to);
}

attncl_status attncl__st_check_size(const attncl_safetensors *file)
{
    return attncl__file_check_size(file->fd, file->file_bytes);
}

attncl_status attncl_safetensors_parse(const void *data, size_t bytes,
                                       attncl_safetensors **file_ret)
{
    REQUIRE((data || bytes == 0) && file_ret, ATTNCL_ERR_ARGUMENT, "data or file_ret is NULL");

    attncl_status status = ATTNCL_OK;
    const unsigned char *from = data;
    size_t header_bytes;
    attncl_safetensors *file = attncl__alloc_zero(sizeof *file);
    REQUIRE(file, ATTNCL_ERR_NO_MEMORY, "safetensors handle");

    file->fd = -1;
    TRY_DONE(attncl__st_read_header_bytes(from, limit_foreign_bytes(bytes), bytes, &header_bytes));
    from += ST_LENGTH_BYTES;
    const size_t data_bytes = bytes - ST_LENGTH_BYTES - header_bytes;
    TRY_DONE(attncl__st_read_header(file, (const char *)from, header_bytes, data_bytes));
    TRY_DONE(allocate_data(file, data_bytes));
    if (data_bytes > 0)
        memcpy(file->data, from + header_bytes, data_bytes);

    *file_ret = file;
    file = NULL;

done:
    attncl_safetensors_close(file);
    return status;
}

void attncl_safetensors_close(attncl_safetensors *file)
{
    if (!file)
        return;
    attncl__free(file->metadata);
    attncl__file_close(&file->fd);
    attncl__free(file->tensor);
    attncl__free(file->data);
    attncl__free(file->strings);
    attncl__free(file);
}

// The format allows NaN and infinities, so opening a file does not look for them.
attncl_status attncl_safetensors_check_finite(const attncl_safetensors *file)
{
    REQUIRE(file, ATTNCL_ERR_ARGUMENT, "file is NULL");
    enum { BLOCK = 512 };
    double value[BLOCK];

    for (size_t i = 0; i < file->n_tensors; ++i) {
        const attncl_array *array = &file->tensor[i].array;
        unsigned char from[BLOCK * sizeof(double)];
        const size_t each = attncl_dtype_bytes(array->dtype);
        if (!attncl__is_float(array->dtype))
            continue;
        for (size_t at = 0, n; at < array->bytes / each; at += n) {
            n = array->bytes / each - at < BLOCK ? array->bytes / each - at : BLOCK;
            TRY(attncl__st_read(file, array, at * each, n * each, from));
            TRY(attncl__convert(array->dtype, from, ATTNCL_F64, value, n));
            for (size_t j = 0; j < n; ++j)
                REQUIRE(isfinite(value[j]), ATTNCL_ERR_FORMAT, "tensor %.200s: element %zu is %g",
                        array->name, at + j, value[j]);
        }
    }
    return ATTNCL_OK;
}
