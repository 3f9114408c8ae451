// SPDX-License-Identifier: MIT
// Shapes declared by letters: "B H T D" is four axes, and a letter has one extent wherever it occurs.
//
//   T      an axis; the first value that has it sets its extent
//   4      an axis of this extent
//   T|1    an axis of extent T, which is already known, or 1
//   T?     an axis that may be missing
//   ...    any number of axes, the same wherever they occur
#ifndef ATTNCL_BASE_SHAPE_SPEC_H
#define ATTNCL_BASE_SHAPE_SPEC_H

#include "base/desc.h"

struct axes {
    int64_t of['Z' + 1]; // extent by letter; of['.']: the product of the "..." axes; -1: unknown
    const int64_t *dim;  // extents of the "..." axes
    int rank;            // number of the "..." axes
    struct axis_source {
        const char *name, *shape;
        const struct tensor_desc *desc;
    } source['Z' + 1]; // by letter: the value that set the extent; desc NULL: the caller set it
};

void attncl__axes_init(struct axes *axes);

// ERR_SHAPE unless `d`, called `name` in messages, has the shape.  Sets the extents of letters that are
// new; `name` and `d` must outlive `axes`.
attncl_status attncl__axes_match(struct axes *axes, const char *shape, const char *name,
                                 const struct tensor_desc *d);

// Describes a value of this shape, all of whose letters are known.
attncl_status attncl__axes_make(const struct axes *axes, const char *shape, attncl_dtype dtype,
                                struct tensor_desc *ret);

#endif
