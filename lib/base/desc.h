// SPDX-License-Identifier: MIT
// The shape of a value: element type, extents, strides and a start, all in elements.  Views differ
// from their base only in strides and start.
#ifndef ATTNCL_BASE_DESC_H
#define ATTNCL_BASE_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/dtype.h"
#include "attncl/status.h"
#include "base/dtype.h"

struct tensor_desc {
    attncl_dtype dtype; // ATTNCL_DTYPE_NONE: an optional input that is absent
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    int64_t stride[ATTNCL_MAX_RANK];
    int64_t start; // element of the base that is this one's first
};

// Rows of one width: all axes but the last folded into one with a single stride.
struct rows {
    int64_t count;
    int64_t width;
    int64_t stride; // elements between rows
};

// Describes a contiguous tensor.  ERR_SHAPE on a negative extent, a rank over the limit, or more than
// 2^48 elements.
attncl_status attncl__desc_make(attncl_dtype dtype, int rank, const int64_t *dim,
                                struct tensor_desc *ret);
static inline bool attncl__desc_present(const struct tensor_desc *d)
{
    return d->dtype != ATTNCL_DTYPE_NONE;
}
int64_t attncl__desc_count(const struct tensor_desc *d); // in elements
size_t attncl__desc_bytes(const struct tensor_desc *d);  // of a contiguous copy
// One past the last element of a view without negative strides.
int64_t attncl__desc_end(const struct tensor_desc *view);
bool attncl__desc_contiguous(const struct tensor_desc *d);
bool attncl__desc_same_shape(const struct tensor_desc *a, const struct tensor_desc *b);

// Folds the leading axes.  False when the last axis has gaps or the leading axes have no common
// stride.
bool attncl__desc_rows(const struct tensor_desc *d, struct rows *ret);

// Writes "[2, 3, 4]" into `text` and returns it.  SHAPE() does so within a message's arguments.
enum { SHAPE_TEXT_BYTES = 192 };
const char *attncl__format_shape(const struct tensor_desc *d, char text[SHAPE_TEXT_BYTES]);
#define SHAPE(d) attncl__format_shape((d), (char[SHAPE_TEXT_BYTES]){0})

#endif
