// SPDX-License-Identifier: MIT
// Iterates over a view of any strides, as rows of its collapsed axes.

#include "op/view/view.h"

static struct nd_iter collapse_axes(const struct tensor_desc *x)
{
    struct nd_iter w = {.width = 1, .inner_stride = 1, .rows = 1};
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int n = 0; // innermost first

    for (int i = x->rank - 1; i >= 0; --i) {
        if (x->dim[i] == 1)
            continue;
        if (n > 0 && x->stride[i] == stride[n - 1] * dim[n - 1]) {
            dim[n - 1] *= x->dim[i];
        } else {
            dim[n] = x->dim[i];
            stride[n++] = x->stride[i];
        }
    }
    if (n > 0) {
        w.width = dim[0];
        w.inner_stride = stride[0];
    }
    for (int i = n - 1; i >= 1; --i) {
        w.dim[w.n_outer] = dim[i];
        w.stride[w.n_outer++] = stride[i];
        w.rows *= dim[i];
    }
    return w;
}

struct nd_iter attncl__nd_iter(const struct tensor_desc *view)
{
    enum { LONGEST = 4096 };
    struct nd_iter w = collapse_axes(view);

    if (w.n_outer > 0 || w.width <= LONGEST)
        return w;
    w.dim[0] = ceil_div(w.width, LONGEST);
    w.stride[0] = w.inner_stride * LONGEST;
    w.n_outer = 1;
    w.rows = w.dim[0];
    w.width = LONGEST;
    return w;
}

void attncl__nd_iter_args(const struct nd_iter *w, struct arg args[N_ND_ITER_ARGS])
{
    for (int i = 0; i < ATTNCL_MAX_RANK - 1; ++i) {
        const int axis = i - (ATTNCL_MAX_RANK - 1 - w->n_outer);
        args[2 * i] = arg_i64(axis >= 0 ? w->dim[axis] : 1);
        args[2 * i + 1] = arg_i64(axis >= 0 ? w->stride[axis] : 0);
    }
}
