// SPDX-License-Identifier: MIT
//
// Weights in 8 and 4 bits: a tensor of bytes U8 [panels, pairs, bytes of a pair], and metadata with its type and shape,
// "attncl.quantised.NAME": "q8 [7, 64]".

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantised.h"
#include "io/safetensors.h"

static const char *description_of(const attncl_safetensors *file, const char *name)
{
    char key[ST_QUANTISED_KEY_BYTES];
    snprintf(key, sizeof key, ATTNCL_QUANTISED_KEY "%s", name);
    return attncl_safetensors_metadata(file, key);
}

static attncl_dtype type_named(const char *text)
{
    return strcmp(text, "q8") == 0   ? ATTNCL_Q8
           : strcmp(text, "q4") == 0 ? ATTNCL_Q4
                                     : ATTNCL_DTYPE_NONE;
}

static attncl_status parse(const char *text, attncl_dtype *dtype_ret, int64_t dim_ret[2])
{
    char type[4] = "", extent[2][16] = {"", ""};
    int end = 0;

    sscanf(text, "%3[a-z0-9] [%15[0-9], %15[0-9]]%n", type, extent[0], extent[1], &end);
    REQUIRE(end > 0 && text[end] == '\0', ATTNCL_ERR_FORMAT,
            "metadata says \"%.80s\", not for example \"q8 [7, 64]\"", text);
    *dtype_ret = type_named(type);
    REQUIRE(*dtype_ret, ATTNCL_ERR_FORMAT, "metadata says %s, it can be q8 or q4", type);
    for (int i = 0; i < 2; ++i)
        dim_ret[i] = strtoll(extent[i], NULL, 10);
    REQUIRE(dim_ret[1] % QUANTISED_BLOCK == 0, ATTNCL_ERR_FORMAT,
            "metadata says %s, but %" PRId64 " is no multiple of %d", text, dim_ret[1],
            QUANTISED_BLOCK);
    return ATTNCL_OK;
}

// The bytes of weights [n, k] as a tensor.
static void set_form(attncl_dtype dtype, const int64_t dim[2], int64_t form_ret[3])
{
    form_ret[0] = (dim[0] + QUANTISED_ROWS - 1) / QUANTISED_ROWS;
    form_ret[1] = (dim[1] / QUANTISED_BLOCK + 1) / 2;
    form_ret[2] = (int64_t)attncl__quantised_pair_bytes(dtype);
}

static attncl_status check_bytes(const attncl_array *a, const char *text, attncl_dtype dtype,
                                 const int64_t dim[2])
{
    int64_t want[3];

    set_form(dtype, dim, want);
    REQUIRE(a->rank == 3 && memcmp(a->dim, want, sizeof want) == 0, ATTNCL_ERR_FORMAT,
            "has %zu bytes or another shape, but %s is [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
            a->bytes, text, want[0], want[1], want[2]);
    return ATTNCL_OK;
}

attncl_status attncl__st_stored(const attncl_array *array, attncl_array *stored_ret)
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
    set_form(array->dtype, dim, stored_ret->dim);
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
    // Metadata that a program kept which made floats of the tensor say nothing.
    const char *text = a && a->dtype == ATTNCL_U8 ? description_of(file, name) : NULL;
    attncl_dtype dtype = ATTNCL_DTYPE_NONE;
    int64_t dim[2] = {0, 0};

    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "the file has no tensor %s", name);
    if (text) {
        TRY(parse(text, &dtype, dim));
        TRY(check_bytes(a, text, dtype, dim));
    }
    *dtype_ret = dtype;
    memcpy(dim_ret, dim, sizeof dim);
    return ATTNCL_OK;
}
