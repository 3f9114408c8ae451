// SPDX-License-Identifier: MIT
//
// Datasets in safetensors files: opening one, and its arrays as token ids.

#include <inttypes.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/try.h"
#include "train/dataset_internal.h"

static size_t count_of(const attncl_array *array)
{
    size_t n = 1;

    for (int i = 0; i < array->rank; ++i)
        n *= (size_t)array->dim[i];
    return n;
}

static attncl_status read_ids(const attncl_array *array, int64_t *largest_ret, int32_t **ret)
{
    attncl_status status = ATTNCL_OK;
    const size_t n = count_of(array);
    int32_t *ids = NULL;

    REQUIRE(attncl__is_integer(array->dtype), ATTNCL_ERR_FORMAT, "%s is not of integers",
            array->name);
    ids = attncl__alloc_array(n, sizeof *ids);
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%s of %zu elements", array->name, n);
    status = attncl__convert(array->dtype, array->data, ATTNCL_I32, ids, n);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("%s", array->name);
        goto done;
    }
    for (size_t i = 0; i < n; ++i) {
        if (ids[i] < 0)
            TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s: element %zu is %" PRId32 ", no token",
                          array->name, i, ids[i]));
        if (ids[i] > *largest_ret)
            *largest_ret = ids[i];
    }
    *ret = ids;
    ids = NULL;

done:
    attncl__free(ids);
    return status;
}

attncl_status attncl__dataset_ids(const struct dataset *d, const attncl_array *array,
                                  int64_t *largest_ret, int32_t **ret)
{
    const attncl_status status = read_ids(array, largest_ret, ret);
    if (status != ATTNCL_OK)
        attncl__error_prefix("%s", d->file.path);
    return status;
}

attncl_status attncl__dataset_open_arrays(const struct dataset_class *class, size_t bytes,
                                          const char *path, const struct dataset_options *options,
                                          attncl_status (*read)(struct dataset *,
                                                                const attncl_safetensors *),
                                          struct dataset **ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_safetensors *file = NULL;
    struct dataset *d = NULL;

    TRY(attncl__dataset_create(class, bytes, path, options, &d));
    TRY_DONE(attncl_safetensors_open(path, &file));
    TRY_DONE(read(d, file));
    TRY_DONE(attncl__data_file_check(&d->file)); // between the hash and the reading
    *ret = d;
    d = NULL; // ownership has passed to the caller

done:
    attncl_safetensors_close(file);
    attncl__dataset_close(d);
    return status;
}
