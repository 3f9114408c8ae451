// SPDX-License-Identifier: MIT
// A view's elements in order, as rows: what kernels that read or write any strides walk along.
#ifndef ATTNCL_OP_WALK_H
#define ATTNCL_OP_WALK_H

#include "launch/launch.h"

// The view's last axis apart from the others, outermost first.
struct walk {
    int n_outer;
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int64_t width, step; // of the last axis; the last row may be shorter
    int64_t rows;
};

// Axes that lie one inside the other are merged, so that most views become a few long rows; a
// single long row is cut, for the sake of cores and of the kernels' int columns.
struct walk attncl__walk(const struct tensor_desc *view);

// The outer axes as a kernel takes them, (dim, stride) seven times.
enum { N_WALK_ARGS = 2 * (ATTNCL_MAX_RANK - 1) };
void attncl__walk_args(const struct walk *w, struct arg args[N_WALK_ARGS]);

#endif
