// SPDX-License-Identifier: MIT
// Rows of a KV cache in 8 bits (cl/common/q8_row.clh), tensors of U8.
#ifndef ATTNCL_OP_ATTENTION_Q8_ROW_H
#define ATTNCL_OP_ATTENTION_Q8_ROW_H

#include "base/dtype.h"

// Byte offset of the scales in a row.
static inline int64_t attncl__q8_scales(int64_t channels)
{
    return (channels + 3) / 4 * 4;
}

static inline int64_t attncl__q8_row_bytes(int64_t channels, int64_t n_heads)
{
    return attncl__q8_scales(channels) + 4 * n_heads;
}

// Extent of a row of a cache of this type, U8 for rows in 8 bits.
static inline int64_t attncl__cache_row(attncl_dtype dtype, int64_t channels, int64_t n_heads)
{
    return dtype == ATTNCL_U8 ? attncl__q8_row_bytes(channels, n_heads) : channels;
}

#endif
