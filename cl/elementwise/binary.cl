// SPDX-License-Identifier: MIT
// Sums and products of two arrays of one shape.  Host side: lib/op/elementwise/binary.c
//
//   Work      a work-group takes `per_group` consecutive elements, work-item i vectors i, i + LS ... of
//             them
//   Memory    reads two arrays, writes one
//   Numerics  one rounding

#define ALIGNED_VECTORS
#include "common/vector.clh"

#define JOIN(OPERATOR)                                                                             \
    const long first = (long)get_group_id(0) * per_group;                                          \
    const int n = (int)min((long)per_group, count - first);                                        \
    int c = VW * (int)get_local_id(0);                                                             \
                                                                                                   \
    a += first;                                                                                    \
    b += first;                                                                                    \
    y += first;                                                                                    \
    for (; c + VW <= n; c += VW * LS)                                                              \
        VSTORE(VLOAD(a + c) OPERATOR VLOAD(b + c), y + c);                                         \
    if (c < n) {                                                                                   \
        const FV va = load_part(a + c, n - c, 0.0f), vb = load_part(b + c, n - c, 0.0f);           \
        store_part(va OPERATOR vb, y + c, n - c);                                                  \
    }

KERNEL void binary_add_fwd(__global const float *restrict a, __global const float *restrict b,
                           __global float *restrict y, long count, int per_group)
{
    JOIN(+);
}

KERNEL void binary_mul_fwd(__global const float *restrict a, __global const float *restrict b,
                           __global float *restrict y, long count, int per_group)
{
    JOIN(*);
}
