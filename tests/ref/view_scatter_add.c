// SPDX-License-Identifier: MIT
//
// y[j] = sum over k and i with start_k + i . stride_k = j of x_k[i]

#include "ref/ref.h"

void ref_view_scatter_add_fwd(struct host *const *x, const struct tensor_desc *view, int n,
                              struct host *y)
{
    for (int64_t j = 0; j < y->count; ++j)
        y->data[j] = 0;
    for (int k = 0; k < n; ++k)
        for (int64_t i = 0; i < x[k]->count; ++i) {
            int64_t at = view[k].start, rest = i;
            for (int axis = view[k].rank - 1; axis >= 0; --axis) {
                at += rest % view[k].dim[axis] * view[k].stride[axis];
                rest /= view[k].dim[axis];
            }
            y->data[at] += x[k]->data[i];
        }
}
