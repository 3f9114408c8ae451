// SPDX-License-Identifier: MIT
#ifndef ATTNCL_DTYPE_H
#define ATTNCL_DTYPE_H
#include "attncl/export.h"
#include <stddef.h>
ATTNCL_BEGIN
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
#define ATTNCL_MAX_RANK 8
ATTNCL_API const char *attncl_dtype_name(attncl_dtype dtype);
ATTNCL_API size_t attncl_dtype_bytes(attncl_dtype dtype);
ATTNCL_END
#endif
