// SPDX-License-Identifier: MIT
// Philox 4x32-10, a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3"): each word depends on key and counter alone, so words can be computed anywhere, in any
// order.  cl/common/philox.clh is the kernels' version.
#ifndef ATTNCL_BASE_PHILOX_H
#define ATTNCL_BASE_PHILOX_H

#include <stdint.h>

// Ten rounds of two multiplications, whose high and low halves are mixed with the key.
static inline void attncl__philox4x32(const uint32_t counter[4], const uint32_t key[2],
                                      uint32_t ret[4])
{
    const uint64_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int i = 0; i < 10; ++i) {
        const uint64_t p0 = m0 * c0, p1 = m1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; // the golden ratio
        k1 += 0xBB67AE85u; // sqrt(3) - 1
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

#endif
