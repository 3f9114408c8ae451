// SPDX-License-Identifier: MIT
#ifndef ATTNCL_ARRAY_H
#define ATTNCL_ARRAY_H
#include "attncl/dtype.h"
#include <stddef.h>
#include <stdint.h>
ATTNCL_BEGIN
typedef struct attncl_array {
    const char *name;
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    const void *data;
    size_t bytes;
} attncl_array;
ATTNCL_END
#endif
