// SPDX-License-Identifier: MIT
//
// Token ids out of safetensors files.

#include <inttypes.h>

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

attncl_status attncl__dataset_ids(const attncl_array *array, int64_t *largest_ret, int32_t **ret)
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
