// SPDX-License-Identifier: MIT
//
// Parameters that a file has in 8 or 4 bits.  The list has been checked: their sizes are right.

#include <assert.h>

#include "base/dtype.h"
#include "base/quantised.h"
#include "io/safetensors.h"
#include "model/params.h"

attncl_status attncl__param_read_quantised(const attncl_safetensors *file, const attncl_array *a,
                                           attncl_dtype *dtype_ret, int64_t dim_ret[2],
                                           void **data_ret)
{
    attncl_status status = ATTNCL_OK;
    void *data = attncl__alloc(a->bytes);

    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", a->bytes, a->name);
    TRY_DONE(attncl_safetensors_quantised(file, a->name, dtype_ret, dim_ret));
    assert(*dtype_ret != ATTNCL_DTYPE_NONE);
    TRY_DONE(attncl__st_read(file, a, 0, a->bytes, data));
    TRY_DONE(
        attncl__prefix_failure(attncl__quantised_check(*dtype_ret, dim_ret[0], dim_ret[1], data),
                               "parameter %s", a->name));
    *data_ret = data;
    data = NULL;
done:
    attncl__free(data);
    return status;
}

static attncl_status read_quantised(const attncl_safetensors *file, const attncl_array *a,
                                    float *values)
{
    attncl_dtype dtype;
    int64_t dim[2];
    void *data;

    TRY(attncl__param_read_quantised(file, a, &dtype, dim, &data));
    const attncl_status status = attncl_dequantise(dtype, dim[0], dim[1], data, values);
    attncl__free(data);
    return status;
}

attncl_status attncl__param_read_floats(const attncl_safetensors *file, const attncl_array *a,
                                        float *values)
{
    if (a->dtype == ATTNCL_U8)
        return read_quantised(file, a, values);
    if (a->dtype == ATTNCL_F32)
        return attncl__st_read(file, a, 0, a->bytes, values);
    void *data = attncl__alloc(a->bytes);
    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", a->bytes, a->name);
    attncl_status status = attncl__st_read(file, a, 0, a->bytes, data);
    if (status == ATTNCL_OK)
        status = attncl__convert(a->dtype, data, ATTNCL_F32, values,
                                 a->bytes / attncl_dtype_bytes(a->dtype));
    attncl__free(data);
    return status;
}
