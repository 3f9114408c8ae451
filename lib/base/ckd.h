// SPDX-License-Identifier: MIT
// Checked arithmetic for sizes from untrusted sources: shapes, files, options.  The size of an
// existing object needs no check.  Each function returns false on overflow and then leaves *r unchanged.
#ifndef ATTNCL_BASE_CKD_H
#define ATTNCL_BASE_CKD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEFINE_CHECKED(name, type, overflows)                                                      \
    static inline bool name(type a, type b, type *r)                                               \
    {                                                                                              \
        type x;                                                                                    \
        if (overflows(a, b, &x))                                                                   \
            return false;                                                                          \
        *r = x;                                                                                    \
        return true;                                                                               \
    }
DEFINE_CHECKED(ckd_mul_size, size_t, __builtin_mul_overflow)
DEFINE_CHECKED(ckd_add_size, size_t, __builtin_add_overflow)
DEFINE_CHECKED(ckd_mul_i64, int64_t, __builtin_mul_overflow)
DEFINE_CHECKED(ckd_add_i64, int64_t, __builtin_add_overflow)

// The next multiple of `align`, a power of two.
static inline bool ckd_round_up(size_t bytes, size_t align, size_t *r)
{
    size_t x;
    if (!ckd_add_size(bytes, align - 1, &x))
        return false;
    *r = x & ~(align - 1);
    return true;
}

#endif
