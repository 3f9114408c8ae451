// SPDX-License-Identifier: MIT
// Iterates over a view of any strides, as rows of its collapsed axes.
#ifndef ATTNCL_OP_VIEW_STRIDED_ITER_H
#define ATTNCL_OP_VIEW_STRIDED_ITER_H

#include "launch/launch.h"

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
