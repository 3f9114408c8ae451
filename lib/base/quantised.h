// SPDX-License-Identifier: MIT
// Weights in 8 and 4 bits on the host (attncl/dtype.h).  In memory they are panels of 16 rows, each a sequence of pairs of
// blocks of 32 columns:
//
//   half d[2][16]         scales of the pair
//   uchar q[2][BITS][16][4]   BITS vectors of 64 bytes, each with 4 bytes of every row.  Byte t of vector v is, of 8 bits,
//                         column 4 v + t, + 128; of 4 bits column 8 v + t in its low half, 8 v + 4 + t in its high one
//
// Rows beyond n, and the second block where k / 32 is odd, have scales of 0.
#ifndef ATTNCL_BASE_QUANTISED_H
#define ATTNCL_BASE_QUANTISED_H

#include <stdbool.h>

#include "attncl/dtype.h"

enum { QUANTISED_BLOCK = 32, QUANTISED_ROWS = 16 };

static inline bool attncl__is_quantised(attncl_dtype dtype)
{
    return dtype == ATTNCL_Q8 || dtype == ATTNCL_Q4;
}

// Bytes of a pair of blocks of a panel's rows.
size_t attncl__quantised_pair_bytes(attncl_dtype dtype);

// ERR_FORMAT when a scale is not finite.
attncl_status attncl__quantised_check(attncl_dtype dtype, int64_t n, int64_t k, const void *data);

#endif
