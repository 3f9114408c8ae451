// SPDX-License-Identifier: MIT
/** @file attncl/array.h  A named array in host memory: what files hold, what models take. */
#ifndef ATTNCL_ARRAY_H
#define ATTNCL_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"

ATTNCL_BEGIN

/** Elements in C order, native byte order, possibly unaligned.  Who owns name and data is said
 * where it is used. */
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
