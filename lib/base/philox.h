// SPDX-License-Identifier: MIT
// Philox 4x32-10, a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3"): the words are a function of key and counter alone, so they can be made anywhere, in any
// order.  cl/common has the same for kernels.
#ifndef ATTNCL_BASE_PHILOX_H
#define ATTNCL_BASE_PHILOX_H

#include <stdint.h>

void attncl__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4]);

#endif
