// SPDX-License-Identifier: MIT
//
// Tensors of a safetensors file: rules for reading and writing, and look-up.  Quantised weights are stored as a tensor
// U8 [panels, pairs, bytes of a pair] and metadata with type and shape, "attncl.quantised.NAME": "q8 [7, 64]".

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ckd.h"
#include "base/dtype.h"
#include "base/quantised.h"
#include "base/utf8.h"
#include "io/safetensors.h"

// The format limits extents to 2^48 - 1.  Element counts have the same limit here, so that sums of a few
// products fit 64 bits.
static const int64_t max_elements = (INT64_C(1) << 48) - 1;

// Finds C0, DEL and C1 (U+0080 to U+009F, two bytes of UTF-8), which a terminal would execute.
static bool has_control(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; ++p)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return true;
    return false;
}

attncl_status attncl__st_check_name(const char *name, attncl_status blame)
{
    REQUIRE(name && *name, blame, "a tensor without a name");
    const size_t bytes = strlen(name);
    REQUIRE(bytes <= ST_MAX_NAME_BYTES, blame,
            "a tensor's name of %zu bytes, at most %d are possible", bytes, ST_MAX_NAME_BYTES);
    REQUIRE(attncl__is_utf8(name), blame, "a tensor's name is not UTF-8");
    REQUIRE(!has_control(name), blame, "a tensor's name has a control character: %s", name);
    REQUIRE(strcmp(name, ST_METADATA_KEY) != 0, blame, "a tensor named %s", name);
    return ATTNCL_OK;
}

attncl_status attncl__st_compute_bytes(const attncl_array *array, attncl_status blame,
                                       size_t *bytes_ret)
{
    const size_t bits_each = attncl__dtype_bits(array->dtype);
    int64_t product = 1; // without extents of 0: overflow must not depend on the order of axes
    bool empty = false;

    REQUIRE(bits_each > 0, blame, "element type %d is unknown", (int)array->dtype);
    REQUIRE(array->rank >= 0 && array->rank <= ATTNCL_MAX_RANK, blame,
            "rank %d, at most %d axes are possible", array->rank, ATTNCL_MAX_RANK);
    for (int i = 0; i < array->rank; ++i) {
        const int64_t extent = array->dim[i];
        REQUIRE(extent >= 0 && extent <= max_elements, blame,
                "axis %d has extent %" PRId64 ", possible are 0 to 2^48 - 1", i, extent);
        empty = empty || extent == 0;
        REQUIRE(extent == 0 || (ckd_mul_i64(product, extent, &product) && product <= max_elements),
                blame, "more than 2^48 - 1 elements");
    }

    size_t bits = 0;
    REQUIRE(empty || ckd_mul_size((size_t)product, bits_each, &bits), blame, "too many bytes");
    REQUIRE(bits % 8 == 0, blame, "%" PRId64 " elements of %zu bits are no whole number of bytes",
            product, bits_each);
    *bytes_ret = bits / 8;
    return ATTNCL_OK;
}

// -- tensors and metadata of an open file

size_t attncl_safetensors_count(const attncl_safetensors *file)
{
    return file ? file->n_tensors : 0;
}

const attncl_array *attncl_safetensors_at(const attncl_safetensors *file, size_t i)
{
    return file && i < file->n_tensors ? &file->tensor[i].array : NULL;
}

static int compare_name(const void *name, const void *tensor)
{
    return strcmp(name, ((const struct st_tensor *)tensor)->array.name);
}

const attncl_array *attncl_safetensors_find(const attncl_safetensors *file, const char *name)
{
    if (!file || !name || file->n_tensors == 0)
        return NULL;
    const struct st_tensor *found =
        bsearch(name, file->tensor, file->n_tensors, sizeof *file->tensor, compare_name);
    return found ? &found->array : NULL;
}

const char *attncl_safetensors_metadata_at(const attncl_safetensors *file, size_t i,
                                           const char **value_ret)
{
    if (!file || i >= file->n_metadata)
        return NULL;
    if (value_ret)
        *value_ret = file->metadata[i].value;
    return file->metadata[i].key;
}

const char *attncl_safetensors_metadata(const attncl_safetensors *file, const char *key)
{
    for (size_t i = 0; file && key && i < file->n_metadata; ++i)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

// -- quantised weights

static const char *find_description(const attncl_safetensors *file, const char *name)
{
    char key[ST_QUANTISED_KEY_BYTES];
    snprintf(key, sizeof key, ATTNCL_QUANTISED_KEY "%s", name);
    return attncl_safetensors_metadata(file, key);
}

static attncl_dtype parse_type(const char *text)
{
    return strcmp(text, "q8") == 0   ? ATTNCL_Q8
           : strcmp(text, "q4") == 0 ? ATTNCL_Q4
                                     : ATTNCL_DTYPE_NONE;
}

static attncl_status parse_description(const char *text, attncl_dtype *dtype_ret,
                                       int64_t dim_ret[2])
{
    char type[4] = "", extent[2][16] = {"", ""};
    int end = 0;

    sscanf(text, "%3[a-z0-9] [%15[0-9], %15[0-9]]%n", type, extent[0], extent[1], &end);
    REQUIRE(end > 0 && text[end] == '\0', ATTNCL_ERR_FORMAT,
            "metadata says \"%.80s\", not for example \"q8 [7, 64]\"", text);
    *dtype_ret = parse_type(type);
    REQUIRE(*dtype_ret, ATTNCL_ERR_FORMAT, "metadata says %s, it can be q8 or q4", type);
    for (int i = 0; i < 2; ++i)
        dim_ret[i] = strtoll(extent[i], NULL, 10);
    REQUIRE(dim_ret[1] % QUANTISED_BLOCK == 0, ATTNCL_ERR_FORMAT,
            "metadata says %s, but %" PRId64 " is no multiple of %d", text, dim_ret[1],
            QUANTISED_BLOCK);
    return ATTNCL_OK;
}

// Computes the shape of the U8 tensor that stores weights [n, k].
static void compute_stored_shape(attncl_dtype dtype, const int64_t dim[2], int64_t shape_ret[3])
{
    shape_ret[0] = (dim[0] + QUANTISED_ROWS - 1) / QUANTISED_ROWS;
    shape_ret[1] = (dim[1] / QUANTISED_BLOCK + 1) / 2;
    shape_ret[2] = (int64_t)attncl__quantised_pair_bytes(dtype);
}

static attncl_status check_stored_shape(const attncl_array *a, const char *text, attncl_dtype dtype,
                                        const int64_t dim[2])
{
    int64_t want[3];

    compute_stored_shape(dtype, dim, want);
    REQUIRE(a->rank == 3 && memcmp(a->dim, want, sizeof want) == 0, ATTNCL_ERR_FORMAT,
            "has %zu bytes or another shape, but %s is [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
            a->bytes, text, want[0], want[1], want[2]);
    return ATTNCL_OK;
}

attncl_status attncl__st_describe_stored(const attncl_array *array, attncl_array *stored_ret)
{
    const int64_t *dim = array->dim;

    *stored_ret = *array;
    if (!attncl__is_quantised(array->dtype))
        return ATTNCL_OK;
    REQUIRE(array->rank == 2, ATTNCL_ERR_ARGUMENT, "%s has %d axes, not 2",
            attncl_dtype_name(array->dtype), array->rank);
    REQUIRE(attncl_quantised_bytes(array->dtype, dim[0], dim[1]) > 0 ||
                (dim[0] == 0 && dim[1] >= 0 && dim[1] % QUANTISED_BLOCK == 0) ||
                (dim[1] == 0 && dim[0] > 0),
            ATTNCL_ERR_ARGUMENT, "%s cannot have shape [%" PRId64 ", %" PRId64 "]",
            attncl_dtype_name(array->dtype), dim[0], dim[1]);
    stored_ret->dtype = ATTNCL_U8;
    stored_ret->rank = 3;
    compute_stored_shape(array->dtype, dim, stored_ret->dim);
    return ATTNCL_OK;
}

void attncl__st_describe_quantised(const attncl_array *array, char key_ret[ST_QUANTISED_KEY_BYTES],
                                   char text_ret[ST_QUANTISED_TEXT_BYTES])
{
    snprintf(key_ret, ST_QUANTISED_KEY_BYTES, ATTNCL_QUANTISED_KEY "%s", array->name);
    snprintf(text_ret, ST_QUANTISED_TEXT_BYTES, "%s [%" PRId64 ", %" PRId64 "]",
             array->dtype == ATTNCL_Q8 ? "q8" : "q4", array->dim[0], array->dim[1]);
}

attncl_status attncl_safetensors_quantised(const attncl_safetensors *file, const char *name,
                                           attncl_dtype *dtype_ret, int64_t *dim_ret)
{
    REQUIRE(file && name && dtype_ret && dim_ret, ATTNCL_ERR_ARGUMENT,
            "file, name, dtype_ret or dim_ret is NULL");
    const attncl_array *a = attncl_safetensors_find(file, name);
    // If a program converted the tensor to floats but kept the metadata, ignore it.
    const char *text = a && a->dtype == ATTNCL_U8 ? find_description(file, name) : NULL;
    attncl_dtype dtype = ATTNCL_DTYPE_NONE;
    int64_t dim[2] = {0, 0};

    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "the file has no tensor %s", name);
    if (text) {
        TRY(parse_description(text, &dtype, dim));
        TRY(check_stored_shape(a, text, dtype, dim));
    }
    *dtype_ret = dtype;
    memcpy(dim_ret, dim, sizeof dim);
    return ATTNCL_OK;
}
