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
#include <stdint.h>

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

/** Types of weights on devices, of no element by itself: attncl_quantise(). */
#define ATTNCL_QUANTISED_LIST(X)                                                                   \
    X(Q8, 23, 8)                                                                                   \
    X(Q4, 24, 4)

typedef enum attncl_dtype {
    ATTNCL_DTYPE_NONE = 0,
#define ATTNCL_DTYPE_ENUM(name, value, bits) ATTNCL_##name = value,
    ATTNCL_DTYPE_LIST(ATTNCL_DTYPE_ENUM) ATTNCL_QUANTISED_LIST(ATTNCL_DTYPE_ENUM)
#undef ATTNCL_DTYPE_ENUM
} attncl_dtype;

/** Most axes a tensor has. */
#define ATTNCL_MAX_RANK 8

/** "F32", "BOOL" ...; "none" for other values.  Static storage.  Any thread.
 * Errors: none. */
ATTNCL_API const char *attncl_dtype_name(attncl_dtype dtype);

/** Bytes of one element; 0 for an unknown, quantised or sub-byte type.  Any thread.
 * Errors: none. */
ATTNCL_API size_t attncl_dtype_bytes(attncl_dtype dtype);

/**
 * Converts `count` elements between types on the host.  Any float type converts to any other, rounded
 * to nearest, ties to even; any integer type and BOOL to I32 and I64, and to U8 and BOOL, which are
 * flags then (not zero: 1); another type to itself.
 *
 * @param from  elements of `from_type`, possibly unaligned, borrowed
 * @param to    space for `count` elements of `to_type`; must not overlap
 *
 * ERR_ARGUMENT names the first element that the type cannot hold: an integer beyond it, a finite
 * number that would become infinite in F16 or BF16; in F32 it does.  Elements before it are written.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_DTYPE for another pair of types.
 */
ATTNCL_API attncl_status attncl_elements_convert(attncl_dtype from_type, const void *from,
                                                 attncl_dtype to_type, void *to, size_t count);

/**
 * Weights [n, k] of a linear map or an embedding in 8 or 4 bits, k a multiple of 32: blocks of 32 along k
 * with a scale d in F16, an element is d q (Q8, q from -127 to 127) or d (q - 8) (Q4, q from 0 to 15).
 * docs/model-files.md has the layout.  A tensor of such a type is made from these bytes, and only
 * attncl_linear() and attncl_embedding() take it, whole.
 */

/** Bytes of the whole; 0 for another type, and sizes that are not possible.  Any thread.
 * Errors: none. */
ATTNCL_API size_t attncl_quantised_bytes(attncl_dtype dtype, int64_t n, int64_t k);

/**
 * Rounds floats to a quantised type.  What attncl_dequantise() gives becomes the same bytes again.
 *
 * @param from  [n, k] floats, borrowed
 * @param to    space for attncl_quantised_bytes()
 *
 * ERR_ARGUMENT names the first element that is not finite or too large for an F16 scale.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_DTYPE for another type, ERR_SHAPE where k is no multiple of 32.
 */
ATTNCL_API attncl_status attncl_quantise(attncl_dtype dtype, int64_t n, int64_t k,
                                         const float *from, void *to);

/** The floats [n, k] that the bytes stand for, exact.  ERR_FORMAT when a scale is not finite.  Any thread.
 * Errors: ERR_FORMAT, ERR_ARGUMENT, ERR_DTYPE, ERR_SHAPE. */
ATTNCL_API attncl_status attncl_dequantise(attncl_dtype dtype, int64_t n, int64_t k,
                                           const void *from, float *to);

ATTNCL_END

#endif
