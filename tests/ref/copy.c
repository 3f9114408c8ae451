// SPDX-License-Identifier: MIT

#include "ref/ref.h"

void ref_copy_fwd(const struct host *base, const struct tensor_desc *view, struct host *y)
{
    for (int64_t i = 0; i < y->count; ++i) {
        int64_t rest = i, at = view->start;
        for (int axis = view->rank - 1; axis >= 0; --axis) {
            at += rest % view->dim[axis] * view->stride[axis];
            rest /= view->dim[axis];
        }
        y->data[i] = base->data[at];
    }
}
