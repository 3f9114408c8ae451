// SPDX-License-Identifier: MIT
/** @file attncl/dtype.h  Element types.  Row-major, little-endian on disk, native in memory. */
#ifndef ATTNCL_DTYPE_H
#define ATTNCL_DTYPE_H

#include <stddef.h>

#include "attncl/export.h"

ATTNCL_BEGIN

/** Name (as safetensors writes it), pinned value, bytes of one element. */
#define ATTNCL_DTYPE_LIST(X)                                                                       \
    X(F32, 1, 4)                                                                                   \
    X(F16, 2, 2)                                                                                   \
    X(BF16, 3, 2)                                                                                  \
    X(F64, 4, 8)                                                                                   \
    X(I32, 5, 4)                                                                                   \
    X(I64, 6, 8)                                                                                   \
    X(BOOL, 7, 1)                                                                                  \
    X(U8, 8, 1)                                                                                    \
    X(I8, 9, 1)                                                                                    \
    X(I16, 10, 2)                                                                                  \
    X(U16, 11, 2)                                                                                  \
    X(U32, 12, 4)                                                                                  \
    X(U64, 13, 8)

typedef enum attncl_dtype {
    ATTNCL_DTYPE_NONE = 0,
#define ATTNCL_DTYPE_ENUM(name, value, bytes) ATTNCL_##name = value,
    ATTNCL_DTYPE_LIST(ATTNCL_DTYPE_ENUM)
#undef ATTNCL_DTYPE_ENUM
} attncl_dtype;

/** Most axes a tensor has. */
#define ATTNCL_MAX_RANK 8

/** "F32", "BOOL" ...; "none" for other values.  Static storage.  Any thread. */
ATTNCL_API const char *attncl_dtype_name(attncl_dtype dtype);

/** Bytes of one element, 0 for an unknown type.  Any thread. */
ATTNCL_API size_t attncl_dtype_bytes(attncl_dtype dtype);

ATTNCL_END

#endif
