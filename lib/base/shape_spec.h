// SPDX-License-Identifier: MIT
// Shapes declared by letters: "B H T D" is four axes, and a letter has one extent wherever it occurs.
//
//   T      an axis; the first value that has it sets its extent
//   4      an axis of this extent
//   T|1    an axis of T, which is known, or of 1
//   T?     an axis that may be missing
//   ...    any number of axes, the same wherever they occur
#ifndef ATTNCL_BASE_SHAPE_SPEC_H
#define ATTNCL_BASE_SHAPE_SPEC_H

#include "base/desc.h"

struct axes {
    int64_t of['Z' + 1]; // extents by letter, and of['.'] the product of "..."; -1: not known yet
    const int64_t *dim;  // of "..."
    int rank;
    struct axis_source {
        const char *name, *shape;
        const struct tensor_desc *desc;
    } source['Z' + 1]; // the value that set it; NULL: none, a caller did
};

void attncl__axes_init(struct axes *axes);

// ERR_SHAPE unless `d`, called `name` in messages, has the shape.  Sets the letters that it is the
// first to have; `name` and `d` are kept.
attncl_status attncl__axes_match(struct axes *axes, const char *shape, const char *name,
                                 const struct tensor_desc *d);

// A value of this shape, whose letters are known.
attncl_status attncl__axes_make(const struct axes *axes, const char *shape, attncl_dtype dtype,
                                struct tensor_desc *ret);

#endif
