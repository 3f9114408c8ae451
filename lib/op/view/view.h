// SPDX-License-Identifier: MIT
// Launches over views of any strides.
#ifndef ATTNCL_OP_VIEW_VIEW_H
#define ATTNCL_OP_VIEW_VIEW_H

#include "launch/launch.h"

// A copy of the elements of `view`, of which `from` or, to scatter, `to` is the base; the other one
// is contiguous.  With `add`, F32 is added to what is there.  from_dtype, to_dtype: F16 or BF16 where that
// one is of it and the other F32.
struct view_copy {
    struct span from, to;
    const struct tensor_desc *view;
    bool scatter, add;
    attncl_dtype from_dtype, to_dtype;
};
attncl_status attncl__copy_view(struct launcher *l, const struct view_copy *copy);

// Zeros into the first `count` floats of y.
attncl_status attncl__zeros(struct launcher *l, struct span y, int64_t count);

// -- strided_iter.c: iterates over a view, as rows of its collapsed axes

// The view's last axis apart from the others, outermost first.
struct nd_iter {
    int n_outer;
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int64_t width, inner_stride; // of the last axis; the last row may be shorter
    int64_t rows;
};

// Adjacent axes are collapsed, so that most views become a few long rows; a
// single long row is split, to occupy all cores and because kernels count columns with int.
struct nd_iter attncl__nd_iter(const struct tensor_desc *view);

// The outer axes as a kernel takes them, (dim, stride) seven times.
enum { N_ND_ITER_ARGS = 2 * (ATTNCL_MAX_RANK - 1) };
void attncl__nd_iter_args(const struct nd_iter *w, struct arg args[N_ND_ITER_ARGS]);

#endif
