// SPDX-License-Identifier: MIT
/**
 * @file attncl/dtype.h
 * Element types.  Row-major, little-endian on disk, native in memory.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_DTYPE_H
#define ATTNCL_DTYPE_H

#include <stddef.h>

#include "attncl/export.h"
#include "attncl/status.h"

ATTNCL_BEGIN

/**
 * Name (as safetensors writes it), pinned value, bits of one element.  Types up to U64 convert to
 * what devices compute with; the others can be read from a file, listed and written.
 */
#define ATTNCL_DTYPE_LIST(X)                                                                       \
    X(F32, 1, 32)                                                                                  \
    X(F16, 2, 16)                                                                                  \
    X(BF16, 3, 16)                                                                                 \
    X(F64, 4, 64)                                                                                  \
    X(I32, 5, 32)                                                                                  \
    X(I64, 6, 64)                                                                                  \
    X(BOOL, 7, 8)                                                                                  \
    X(U8, 8, 8)                                                                                    \
    X(I8, 9, 8)                                                                                    \
    X(I16, 10, 16)                                                                                 \
    X(U16, 11, 16)                                                                                 \
    X(U32, 12, 32)                                                                                 \
    X(U64, 13, 64)                                                                                 \
    X(C64, 14, 64)                                                                                 \
    X(F8_E5M2, 15, 8)                                                                              \
    X(F8_E4M3, 16, 8)                                                                              \
    X(F8_E8M0, 17, 8)                                                                              \
    X(F8_E4M3FNUZ, 18, 8)                                                                          \
    X(F8_E5M2FNUZ, 19, 8)                                                                          \
    X(F6_E2M3, 20, 6)                                                                              \
    X(F6_E3M2, 21, 6)                                                                              \
    X(F4, 22, 4)

typedef enum attncl_dtype {
    ATTNCL_DTYPE_NONE = 0,
#define ATTNCL_DTYPE_ENUM(name, value, bits) ATTNCL_##name = value,
    ATTNCL_DTYPE_LIST(ATTNCL_DTYPE_ENUM)
#undef ATTNCL_DTYPE_ENUM
} attncl_dtype;

/** Most axes a tensor has. */
#define ATTNCL_MAX_RANK 8

/** "F32", "BOOL" ...; "none" for other values.  Static storage.  Any thread.
 * Errors: none. */
ATTNCL_API const char *attncl_dtype_name(attncl_dtype dtype);

/** Bytes of one element; 0 for an unknown or sub-byte type.  Any thread.
 * Errors: none. */
ATTNCL_API size_t attncl_dtype_bytes(attncl_dtype dtype);

/**
 * Converts `count` elements between types on the host.  Any float type converts to any other, rounded
 * to nearest, ties to even; any integer type and BOOL to I32 and I64, and to U8 and BOOL, which are
 * flags then (not zero: 1); a type to itself.
 *
 * @param from  elements of `from_type`, possibly unaligned, borrowed
 * @param to    space for `count` elements of `to_type`; must not overlap
 *
 * ERR_ARGUMENT names the first element that the type cannot hold: an integer beyond it, a finite
 * number that would become infinite.  Elements before it are written.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_DTYPE for another pair of types.
 */
ATTNCL_API attncl_status attncl_elements_convert(attncl_dtype from_type, const void *from,
                                                 attncl_dtype to_type, void *to, size_t count);

ATTNCL_END

#endif
