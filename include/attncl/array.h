// SPDX-License-Identifier: MIT
/** @file attncl/array.h  A named array in host memory: what files hold, what models take. */
#ifndef ATTNCL_ARRAY_H
#define ATTNCL_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"

ATTNCL_BEGIN

/** Elements in C order, native byte order, possibly unaligned.  Who owns name and data is said
 * where it is used.  The struct is frozen: it stays as it is in later versions. */
typedef struct attncl_array {
    const char *name;
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    const void *data;
    size_t bytes;
} attncl_array;

/** An array of that shape over `data`, which is borrowed, as the name is; NULL: a shape alone.
 * Errors: none. */
static inline attncl_array attncl_array_make(const char *name, attncl_dtype dtype, int rank,
                                             const int64_t *dim, const void *data)
{
    attncl_array array = {name, dtype, rank, {0}, data, attncl_dtype_bytes(dtype)};
    for (int i = 0; i < rank && i < ATTNCL_MAX_RANK; ++i) {
        array.dim[i] = dim[i];
        array.bytes *= (size_t)dim[i];
    }
    if (rank == 2 && (dtype == ATTNCL_Q8 || dtype == ATTNCL_Q4))
        array.bytes = attncl_quantised_bytes(dtype, dim[0], dim[1]);
    return array;
}

ATTNCL_END

#endif
