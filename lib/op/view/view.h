// SPDX-License-Identifier: MIT
// Launches over views of any strides.
#ifndef ATTNCL_OP_VIEW_VIEW_H
#define ATTNCL_OP_VIEW_VIEW_H

#include "launch/launch.h"

// Copies the elements of `view`, a view of `from` or, with `scatter`, of `to`; the other one is
// contiguous.  `add` adds F32 elements to `to`.  from_dtype and to_dtype are set to F16 or BF16 if that
// one converts from or to F32.
struct view_copy {
    struct span from, to;
    const struct tensor_desc *view;
    bool scatter, add;
    attncl_dtype from_dtype, to_dtype;
};
attncl_status attncl__copy_view(struct launcher *l, const struct view_copy *copy);

// Fills `count` floats of y with zeros, from `start` on.
attncl_status attncl__zeros(struct launcher *l, struct span y, int64_t start, int64_t count);

#endif
