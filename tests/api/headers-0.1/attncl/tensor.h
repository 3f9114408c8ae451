// SPDX-License-Identifier: MIT
#ifndef ATTNCL_TENSOR_H
#define ATTNCL_TENSOR_H
#include "attncl/context.h"
#include "attncl/dtype.h"
#include <stddef.h>
#include <stdint.h>
ATTNCL_BEGIN
typedef struct attncl_tensor attncl_tensor;
ATTNCL_API attncl_status attncl_tensor_create(attncl_context *context, attncl_dtype dtype, int rank,
                                              const int64_t *dim, attncl_dtype data_dtype,
                                              const void *data, attncl_tensor **tensor_ret);
ATTNCL_API void attncl_tensor_destroy(attncl_tensor *tensor);
ATTNCL_API attncl_status attncl_tensor_read(attncl_tensor *tensor, void *data, size_t bytes);
ATTNCL_END
#endif
