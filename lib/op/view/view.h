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

// Zeros into `count` floats of y, from `start` on.
attncl_status attncl__zeros(struct launcher *l, struct span y, int64_t start, int64_t count);

#endif
