// SPDX-License-Identifier: MIT
//
// Search for NaN and infinities.  The format allows them, so opening a file does not check.

#include <math.h>

#include "base/dtype.h"
#include "io/safetensors.h"

enum { BLOCK = 512 };

attncl_status attncl_safetensors_check_finite(const attncl_safetensors *file)
{
    REQUIRE(file, ATTNCL_ERR_ARGUMENT, "file is NULL");
    double value[BLOCK];

    for (size_t i = 0; i < file->n_tensors; ++i) {
        const attncl_array *array = &file->tensor[i].array;
        const unsigned char *from = array->data;
        const size_t each = attncl_dtype_bytes(array->dtype);
        if (!attncl__is_float(array->dtype))
            continue;
        for (size_t at = 0, n; at < array->bytes / each; at += n) {
            n = array->bytes / each - at < BLOCK ? array->bytes / each - at : BLOCK;
            TRY(attncl__convert(array->dtype, from + at * each, ATTNCL_F64, value, n));
            for (size_t j = 0; j < n; ++j)
                REQUIRE(isfinite(value[j]), ATTNCL_ERR_FORMAT, "tensor %.200s: element %zu is %g",
                        array->name, at + j, value[j]);
        }
    }
    return ATTNCL_OK;
}
