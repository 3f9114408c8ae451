// SPDX-License-Identifier: MIT
//
// Tensor descriptions: shapes, strides and element types.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ckd.h"
#include "base/desc.h"
#include "base/quantised.h"
#include "base/try.h"

// With this limit, sizes in bytes stay far below the limits of int64 and size_t.
static const int64_t max_elements = INT64_C(1) << 48;

attncl_status attncl__desc_make(attncl_dtype dtype, int rank, const int64_t *dim,
                                struct tensor_desc *ret)
{
    REQUIRE(attncl_dtype_bytes(dtype) > 0 || attncl__is_quantised(dtype), ATTNCL_ERR_DTYPE,
            "element type %d is unknown", (int)dtype);
    REQUIRE(rank >= 0 && rank <= ATTNCL_MAX_RANK, ATTNCL_ERR_SHAPE,
            "rank %d, at most %d axes are possible", rank, ATTNCL_MAX_RANK);

    if (attncl__is_quantised(dtype))
        REQUIRE(rank == 2 && dim[1] % QUANTISED_BLOCK == 0, ATTNCL_ERR_SHAPE,
                "a %s tensor is [n, k], k a multiple of %d, not of rank %d with k = %" PRId64,
                attncl_dtype_name(dtype), QUANTISED_BLOCK, rank, rank > 0 ? dim[rank - 1] : 0);
    struct tensor_desc d = {.dtype = dtype, .rank = rank};
    int64_t count = 1;
    for (int i = rank - 1; i >= 0; --i) {
        REQUIRE(dim[i] >= 0, ATTNCL_ERR_SHAPE, "axis %d has extent %" PRId64, i, dim[i]);
        d.dim[i] = dim[i];
        d.stride[i] = count;
        const int64_t factor = dim[i] > 0 ? dim[i] : 1; // strides stay positive in empty tensors
        REQUIRE(ckd_mul_i64(count, factor, &count) && count <= max_elements, ATTNCL_ERR_SHAPE,
                "a tensor of more than 2^48 elements");
    }
    *ret = d;
    return ATTNCL_OK;
}

int64_t attncl__desc_count(const struct tensor_desc *d)
{
    int64_t count = 1;
    for (int i = 0; i < d->rank; ++i)
        count *= d->dim[i]; // cannot overflow: desc_make bounds the product of the non-zero extents
    return count;
}

int64_t attncl__desc_end(const struct tensor_desc *view)
{
    int64_t end = view->start + 1;

    for (int i = 0; i < view->rank; ++i)
        end += (view->dim[i] - 1) * view->stride[i];
    return end;
}

size_t attncl__desc_bytes(const struct tensor_desc *d)
{
    if (attncl__is_quantised(d->dtype))
        return attncl_quantised_bytes(d->dtype, d->dim[0], d->dim[1]);
    return (size_t)attncl__desc_count(d) * attncl_dtype_bytes(d->dtype);
}

bool attncl__desc_contiguous(const struct tensor_desc *d)
{
    if (attncl__desc_count(d) == 0)
        return true;
    int64_t expect = 1;
    for (int i = d->rank - 1; i >= 0; --i) {
        if (d->dim[i] != 1 && d->stride[i] != expect)
            return false;
        expect *= d->dim[i];
    }
    return true;
}

bool attncl__desc_same_shape(const struct tensor_desc *a, const struct tensor_desc *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

bool attncl__desc_rows(const struct tensor_desc *d, struct rows *ret)
{
    if (d->rank == 0) {
        *ret = (struct rows){1, 1, 1};
        return true;
    }
    const int last = d->rank - 1;
    if (attncl__desc_count(d) == 0) {
        int64_t count = 1;
        for (int i = 0; i < last; ++i)
            count *= d->dim[i];
        *ret = (struct rows){count, d->dim[last], d->dim[last]};
        return true;
    }
    if (d->dim[last] > 1 && d->stride[last] != 1)
        return false;
    struct rows r = {1, d->dim[last], 0};
    for (int i = last - 1; i >= 0; --i) {
        if (d->dim[i] != 1) {
            if (r.stride == 0)
                r.stride = d->stride[i];
            else if (d->stride[i] != r.stride * r.count)
                return false;
        }
        r.count *= d->dim[i];
    }
    if (r.stride == 0)
        r.stride = r.width;
    *ret = r;
    return true;
}

const char *attncl__format_shape(const struct tensor_desc *d, char text[SHAPE_TEXT_BYTES])
{
    int used = snprintf(text, SHAPE_TEXT_BYTES, "[");
    for (int i = 0; i < d->rank; ++i)
        used += snprintf(text + used, (size_t)(SHAPE_TEXT_BYTES - used), "%s%" PRId64,
                         i ? ", " : "", d->dim[i]);
    snprintf(text + used, (size_t)(SHAPE_TEXT_BYTES - used), "]");
    return text;
}
