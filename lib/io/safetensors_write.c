// SPDX-License-Identifier: MIT
//
// Writes a safetensors file atomically: orders the tensors, writes the header, then the data.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/dtype.h"
#include "base/quantised.h"
#include "base/utf8.h"
#include "io/safetensors.h"

// A file to write, as consecutive parts.
struct layout {
    attncl_array_source source; // NULL: the arrays have their data
    void *user;
    const attncl_array *arrays; // the caller's
    attncl_array *stored;       // as stored in the file
    unsigned char length[ST_LENGTH_BYTES];
    struct strbuf header;
    const attncl_array **order; // `stored` in the file's order
    size_t n;
};

enum { N_HEADER_PARTS = 2 }; // length and header come before the tensors

// Sorts wide types first, so that every tensor begins at a multiple of its element size.
static int compare_alignment(const void *a, const void *b)
{
    const attncl_array *x = *(const attncl_array *const *)a;
    const attncl_array *y = *(const attncl_array *const *)b;
    const size_t x_bits = attncl__dtype_bits(x->dtype), y_bits = attncl__dtype_bits(y->dtype);
    if (x_bits != y_bits)
        return x_bits > y_bits ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const attncl_array *const *)a)->name, (*(const attncl_array *const *)b)->name);
}

static attncl_status store_array(const attncl_array *array, bool with_data, attncl_array *stored)
{
    size_t bytes;
    TRY(attncl__st_check_name(array->name, ATTNCL_ERR_ARGUMENT));
    attncl_status status = attncl__st_describe_stored(array, stored);
    if (status == ATTNCL_OK)
        status = attncl__st_compute_bytes(stored, ATTNCL_ERR_ARGUMENT, &bytes);
    TRY(attncl__prefix_failure(status, "tensor %.200s", array->name));
    REQUIRE(array->bytes == bytes, ATTNCL_ERR_ARGUMENT,
            "tensor %.200s: %zu bytes are given, type and shape ask for %zu", array->name,
            array->bytes, bytes);
    REQUIRE(array->data || bytes == 0 || !with_data, ATTNCL_ERR_ARGUMENT,
            "tensor %.200s: data is NULL", array->name);
    return ATTNCL_OK;
}

static attncl_status check_double_names(const attncl_array **order, size_t n)
{
    qsort(order, n, sizeof *order, compare_names);
    for (size_t i = 1; i < n; ++i)
        REQUIRE(strcmp(order[i - 1]->name, order[i]->name) != 0, ATTNCL_ERR_ARGUMENT,
                "two tensors are named %.200s", order[i]->name);
    return ATTNCL_OK;
}

static bool has_key(const char *const *metadata, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i += 2)
        if (strcmp(metadata[i], key) == 0)
            return true;
    return false;
}

static void add_entry(struct strbuf *header, const char *key, const char *value, bool *any)
{
    attncl__strbuf_add(header, *any ? "," : "\"" ST_METADATA_KEY "\":{");
    attncl__strbuf_add_quoted(header, key);
    attncl__strbuf_add(header, ":");
    attncl__strbuf_add_quoted(header, value);
    *any = true;
}

// Adds the caller's metadata, then that of quantised weights in the file's order.
static attncl_status add_metadata(struct layout *layout, const char *const *metadata)
{
    char own_key[ST_QUANTISED_KEY_BYTES], own_value[ST_QUANTISED_TEXT_BYTES];
    bool any = false;
    size_t n_given = 0;

    for (size_t i = 0; metadata && metadata[i]; n_given = i += 2) {
        const char *key = metadata[i], *value = metadata[i + 1];
        REQUIRE(value, ATTNCL_ERR_ARGUMENT, "metadata %.200s has no value", key);
        REQUIRE(attncl__is_utf8(key) && attncl__is_utf8(value), ATTNCL_ERR_ARGUMENT,
                "metadata %.200s is not UTF-8", key);
        REQUIRE(!has_key(metadata, i, key), ATTNCL_ERR_ARGUMENT, "metadata %.200s is given twice",
                key);
        add_entry(&layout->header, key, value, &any);
    }
    for (size_t i = 0; i < layout->n; ++i) {
        const attncl_array *given = &layout->arrays[layout->order[i] - layout->stored];
        if (!attncl__is_quantised(given->dtype))
            continue;
        attncl__st_describe_quantised(given, own_key, own_value);
        REQUIRE(!has_key(metadata, n_given, own_key), ATTNCL_ERR_ARGUMENT,
                "metadata %.200s is given twice", own_key);
        add_entry(&layout->header, own_key, own_value, &any);
    }
    if (any)
        attncl__strbuf_add(&layout->header, "}");
    return ATTNCL_OK;
}

static void add_tensor(struct strbuf *header, const attncl_array *array, size_t begin, size_t end)
{
    attncl__strbuf_add_quoted(header, array->name);
    attncl__strbuf_add(header, ":{\"dtype\":\"%s\",\"shape\":[", attncl_dtype_name(array->dtype));
    for (int i = 0; i < array->rank; ++i)
        attncl__strbuf_add(header, "%s%" PRId64, i ? "," : "", array->dim[i]);
    attncl__strbuf_add(header, "],\"data_offsets\":[%zu,%zu]}", begin, end);
}

static attncl_status write_header(struct layout *layout, const char *const *metadata)
{
    const attncl_array *const *order = (const attncl_array *const *)layout->order;
    const size_t n = layout->n;
    struct strbuf *header = &layout->header;
    size_t begin = 0, end;

    attncl__strbuf_add(header, "{");
    TRY(add_metadata(layout, metadata));
    for (size_t i = 0; i < n; ++i, begin = end) {
        if (header->used > 1)
            attncl__strbuf_add(header, ",");
        REQUIRE(ckd_add_size(begin, order[i]->bytes, &end) && end < (UINT64_C(1) << 48),
                ATTNCL_ERR_ARGUMENT, "tensors of more than 2^48 bytes");
        add_tensor(header, order[i], begin, end);
    }
    attncl__strbuf_add(header, "}");
    while (header->used % ST_ALIGN != 0 && !header->failed)
        attncl__strbuf_add(header, " ");
    REQUIRE(!header->failed, ATTNCL_ERR_NO_MEMORY, "the header of %zu tensors", n);
    REQUIRE(header->used <= ST_MAX_HEADER_BYTES, ATTNCL_ERR_ARGUMENT,
            "a header of %zu bytes, at most %d are possible", header->used, ST_MAX_HEADER_BYTES);
    return ATTNCL_OK;
}

static attncl_status lay_out(struct layout *layout, const char *const *metadata)
{
    const size_t n = layout->n;

    REQUIRE(n <= ST_MAX_TENSORS, ATTNCL_ERR_ARGUMENT, "%zu tensors, at most %d are possible", n,
            ST_MAX_TENSORS);
    layout->order = attncl__alloc_array(n, sizeof *layout->order);
    layout->stored = attncl__alloc_array(n, sizeof *layout->stored);
    REQUIRE(layout->order && layout->stored, ATTNCL_ERR_NO_MEMORY, "the order of %zu tensors", n);
    for (size_t i = 0; i < n; ++i) {
        TRY(store_array(&layout->arrays[i], !layout->source, &layout->stored[i]));
        layout->order[i] = &layout->stored[i];
    }
    TRY(check_double_names(layout->order, n));
    qsort(layout->order, n, sizeof *layout->order, compare_alignment);
    TRY(write_header(layout, metadata));
    for (int i = 0; i < ST_LENGTH_BYTES; ++i)
        layout->length[i] = (unsigned char)((uint64_t)layout->header.used >> 8 * i);
    return ATTNCL_OK;
}

static attncl_status ask_source(const struct layout *layout, const attncl_array *array,
                                const void **data_ret)
{
    (void)FAIL(ATTNCL_ERR_STATE,
               "its source failed"); // the message, unless the source sets another one
    const attncl_status status =
        layout->source(layout->user, (size_t)(array - layout->stored), data_ret);

    TRY(attncl__prefix_failure(status, "tensor %.200s", array->name));
    REQUIRE(*data_ret || array->bytes == 0, ATTNCL_ERR_ARGUMENT,
            "tensor %.200s: its source gave NULL", array->name);
    return ATTNCL_OK;
}

static attncl_status get_file_part(void *user, size_t i, struct bytes *part_ret)
{
    const struct layout *layout = user;
    const attncl_array *array = i < N_HEADER_PARTS ? NULL : layout->order[i - N_HEADER_PARTS];

    if (i == 0)
        *part_ret = (struct bytes){layout->length, ST_LENGTH_BYTES};
    else if (!array)
        *part_ret = (struct bytes){layout->header.data, layout->header.used};
    else
        *part_ret = (struct bytes){layout->source ? NULL : array->data, array->bytes};
    return array && layout->source ? ask_source(layout, array, &part_ret->data) : ATTNCL_OK;
}

static attncl_status write_file(const char *path, struct layout layout, const char *const *metadata,
                                bool durably)
{
    attncl_status status = ATTNCL_OK;

    TRY_DONE(lay_out(&layout, metadata));
    TRY_DONE(attncl__file_replace_from(path, get_file_part, &layout, layout.n + N_HEADER_PARTS,
                                       durably));

done:
    attncl__free(layout.stored);
    attncl__free(layout.order);
    attncl__strbuf_free(&layout.header);
    return status;
}

attncl_status attncl__st_write(const char *path, const attncl_array *arrays, size_t n,
                               const char *const *metadata, bool durably)
{
    return write_file(path, (struct layout){.arrays = arrays, .n = n}, metadata, durably);
}

attncl_status attncl_safetensors_write(const char *path, const attncl_array *arrays, size_t n,
                                       const char *const *metadata)
{
    REQUIRE(path && (arrays || n == 0), ATTNCL_ERR_ARGUMENT, "path or arrays is NULL");
    return attncl__st_write(path, arrays, n, metadata, false);
}

attncl_status attncl_safetensors_write_from(const char *path, const attncl_array *arrays, size_t n,
                                            const char *const *metadata, attncl_array_source source,
                                            void *user)
{
    REQUIRE(path && (arrays || n == 0) && source, ATTNCL_ERR_ARGUMENT,
            "path, arrays or source is NULL");
    return write_file(path,
                      (struct layout){.arrays = arrays, .n = n, .source = source, .user = user},
                      metadata, false);
}
