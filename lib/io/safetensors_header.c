// SPDX-License-Identifier: MIT
//
// The header of a safetensors file: from JSON to arrays, checking every rule of the format.

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/try.h"
#include "io/json.h"
#include "io/safetensors.h"

// Per tensor: its name, the object, three keys, the type, two arrays, two offsets, at most
// ATTNCL_MAX_RANK extents.
enum { VALUES_PER_TENSOR = 10 + ATTNCL_MAX_RANK };
static const struct json_limits header_limits = {
    .depth = 8, .values = (size_t)ST_MAX_TENSORS * VALUES_PER_TENSOR, .only_digits = true};

// A tensor's range in the data.
struct extent {
    size_t begin, end;
    attncl_array *array;
};

attncl_status attncl__st_header_bytes(const unsigned char first[ST_LENGTH_BYTES], uint64_t total,
                                      size_t *bytes_ret)
{
    uint64_t bytes = 0;
    for (int i = ST_LENGTH_BYTES - 1; i >= 0; --i)
        bytes = bytes << 8 | first[i];

    REQUIRE(bytes <= ST_MAX_HEADER_BYTES, ATTNCL_ERR_FORMAT,
            "a header of %" PRIu64 " bytes, at most %d are possible", bytes, ST_MAX_HEADER_BYTES);
    REQUIRE(bytes <= total - ST_LENGTH_BYTES, ATTNCL_ERR_FORMAT,
            "a header of %" PRIu64 " bytes in a file of %" PRIu64, bytes, total);
    *bytes_ret = (size_t)bytes;
    return ATTNCL_OK;
}

// Appends a copy of a string.  All strings fit in the header's length, since there each has two
// quotes as well.
static const char *keep(char **end, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = *end;
    memcpy(copy, text, bytes);
    *end += bytes;
    return copy;
}

static attncl_status read_metadata(struct attncl_safetensors *file, const struct json *header,
                                   char **end)
{
    const struct json *object;
    bool present;

    TRY(attncl__json_object(header, ST_METADATA_KEY, &present, &object));
    if (!present)
        return ATTNCL_OK;
    file->metadata = attncl__alloc_array(attncl__json_count(object), sizeof *file->metadata);
    REQUIRE(file->metadata, ATTNCL_ERR_NO_MEMORY, "%zu metadata entries",
            attncl__json_count(object));

    for (const char *key = attncl__json_next(object, NULL); key;
         key = attncl__json_next(object, key)) {
        const char *value;
        const attncl_status status = attncl__json_text(object, key, NULL, &value);
        if (status != ATTNCL_OK) {
            attncl__error_prefix(ST_METADATA_KEY);
            return status;
        }
        file->metadata[file->n_metadata++] = (struct st_entry){keep(end, key), keep(end, value)};
    }
    return ATTNCL_OK;
}

// Reads one tensor's object, which has exactly dtype, shape and data_offsets.
static attncl_status read_tensor(const struct json *entry, size_t data_bytes, attncl_array *array,
                                 struct extent *extent)
{
    const char *type_name;
    int64_t offset[2];
    size_t rank, n_offsets, bytes;

    TRY(attncl__json_text(entry, "dtype", NULL, &type_name));
    TRY(attncl__json_ints(entry, "shape", NULL, ATTNCL_MAX_RANK, array->dim, &rank));
    TRY(attncl__json_ints(entry, "data_offsets", NULL, 2, offset, &n_offsets));
    REQUIRE(attncl__json_count(entry) == 3, ATTNCL_ERR_FORMAT,
            "%zu keys, expected dtype, shape, data_offsets", attncl__json_count(entry));
    array->dtype = attncl__dtype_named(type_name);
    array->rank = (int)rank;
    REQUIRE(array->dtype != ATTNCL_DTYPE_NONE, ATTNCL_ERR_FORMAT, "dtype %s is unknown", type_name);
    TRY(attncl__st_bytes(array, ATTNCL_ERR_FORMAT, &bytes));

    REQUIRE(n_offsets == 2, ATTNCL_ERR_FORMAT, "data_offsets has %zu entries, expected 2",
            n_offsets);
    REQUIRE(offset[0] <= offset[1], ATTNCL_ERR_FORMAT,
            "data_offsets [%" PRId64 ", %" PRId64 "] end before they begin", offset[0], offset[1]);
    REQUIRE((uint64_t)offset[1] <= data_bytes, ATTNCL_ERR_FORMAT,
            "data_offsets end at %" PRId64 ", the file has %zu bytes of data", offset[1],
            data_bytes);
    extent->begin = (size_t)offset[0];
    extent->end = (size_t)offset[1];
    REQUIRE(extent->end - extent->begin == bytes, ATTNCL_ERR_FORMAT,
            "data_offsets hold %zu bytes, dtype and shape ask for %zu", extent->end - extent->begin,
            bytes);
    array->bytes = bytes;
    return ATTNCL_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end; // an empty tensor before its neighbour
}

// The tensors must cover the data without gap or overlap.
static attncl_status check_places(struct extent *extent, size_t n, size_t data_bytes)
{
    size_t end = 0;

    qsort(extent, n, sizeof *extent, by_place);
    for (size_t i = 0; i < n; ++i) {
        REQUIRE(extent[i].begin == end, ATTNCL_ERR_FORMAT,
                "tensor %.200s: data begins at %zu, the one before ends at %zu",
                extent[i].array->name, extent[i].begin, end);
        end = extent[i].end;
    }
    REQUIRE(end == data_bytes, ATTNCL_ERR_FORMAT,
            "the tensors take %zu bytes, the file has %zu bytes of data", end, data_bytes);
    return ATTNCL_OK;
}

static attncl_status read_tensors(struct attncl_safetensors *file, const struct json *header,
                                  size_t data_bytes, char **end, struct extent *extent)
{
    for (const char *key = attncl__json_next(header, NULL); key;
         key = attncl__json_next(header, key)) {
        const struct json *entry;
        attncl_array *array = &file->array[file->n_arrays];
        struct extent *place = &extent[file->n_arrays];

        if (strcmp(key, ST_METADATA_KEY) == 0)
            continue;
        TRY(attncl__st_check_name(key, ATTNCL_ERR_FORMAT));
        TRY(attncl__json_object(header, key, NULL, &entry));
        const attncl_status status = read_tensor(entry, data_bytes, array, place);
        if (status != ATTNCL_OK) {
            attncl__error_prefix("tensor %.200s", key);
            return status;
        }
        place->array = array;
        array->name = keep(end, key);
        file->n_arrays++;
    }
    return ATTNCL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const attncl_array *)a)->name, ((const attncl_array *)b)->name);
}

attncl_status attncl__st_read_header(struct attncl_safetensors *file, const char *text,
                                     size_t bytes, size_t data_bytes)
{
    attncl_status status = ATTNCL_OK;
    struct json *header = NULL;
    struct extent *extent = NULL;
    char *end;

    TRY_DONE(attncl__json_parse(text, bytes, &header_limits, &header));
    const size_t n =
        attncl__json_count(header) - (attncl__json_has(header, ST_METADATA_KEY) ? 1 : 0);
    if (n > ST_MAX_TENSORS)
        TRY_DONE(
            FAIL(ATTNCL_ERR_FORMAT, "%zu tensors, at most %d are possible", n, ST_MAX_TENSORS));
    end = file->strings = attncl__alloc(bytes);
    file->array = attncl__alloc_array(n, sizeof *file->array);
    extent = attncl__alloc_array(n, sizeof *extent);
    if (!file->strings || !file->array || !extent)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "the names of %zu tensors", n));

    TRY_DONE(read_metadata(file, header, &end));
    TRY_DONE(read_tensors(file, header, data_bytes, &end, extent));
    assert((size_t)(end - file->strings) <= bytes);
    TRY_DONE(check_places(extent, file->n_arrays, data_bytes));

    // The data is allocated only now that the header agrees with the file's length.
    file->data = attncl__alloc(data_bytes);
    if (!file->data)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu bytes of tensors", data_bytes));
    for (size_t i = 0; i < file->n_arrays; ++i)
        extent[i].array->data = file->data + extent[i].begin;
    qsort(file->array, file->n_arrays, sizeof *file->array, by_name);

done:
    attncl__free(extent);
    attncl__json_free(header);
    return status;
}
