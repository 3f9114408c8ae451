// SPDX-License-Identifier: MIT
// 8-bit and 4-bit weights on the host (attncl/dtype.h).  A matrix is stored in panels of 16 rows.  A panel is a
// sequence of pairs of blocks of 32 columns:
//
//   half d[2][16]             the pair's scales, by block and row
//   uchar q[2][BITS][16][4]   by block, vector of 64 bytes, and row.  Byte t of vector v holds
//                             Q8: column 4 v + t, plus 128
//                             Q4: column 8 v + t in its low half, column 8 v + 4 + t in its high half
//
// Padding (rows beyond n, the second block of the last pair when k / 32 is odd) has scales of 0.
#ifndef ATTNCL_BASE_QUANTISED_H
#define ATTNCL_BASE_QUANTISED_H

#include <stdbool.h>

#include "attncl/dtype.h"

enum { QUANTISED_BLOCK = 32, QUANTISED_ROWS = 16 };

static inline bool attncl__is_quantised(attncl_dtype dtype)
{
    return dtype == ATTNCL_Q8 || dtype == ATTNCL_Q4;
}

// Bytes of one pair of blocks in a panel.
size_t attncl__quantised_pair_bytes(attncl_dtype dtype);

// ERR_FORMAT when a scale is not finite.
attncl_status attncl__quantised_check(attncl_dtype dtype, int64_t n, int64_t k, const void *data);

#endif
