// SPDX-License-Identifier: MIT
// How kernels over rows and over elements are launched.
#ifndef ATTNCL_OP_ROW_LAUNCH_H
#define ATTNCL_OP_ROW_LAUNCH_H

#include "op/op.h"

// The rows of an input whose bit in `strided` is set, or of a contiguous one.
struct rows attncl__rows(const struct tensor_desc *x);

// The same as a kernel takes them: memory, start, stride.
#define ROW_ARGS(call, i)                                                                          \
    arg_mem((call)->in[i]), arg_i64((call)->sig.in[i].start),                                      \
        arg_i64(attncl__rows(&(call)->sig.in[i]).stride)

// A launch over rows: each work-group takes `rows_per_group` consecutive ones.
struct row_launch {
    struct kspec spec; // VW and LS are set
    struct grid grid;
    int64_t rows_per_group;
    unsigned vw;
};
// Where one work-item would take more iterations than the device allows, as of several on a GPU.
struct row_launch attncl__row_launch(const struct device_caps *caps, const char *file,
                                     const char *kernel, int64_t rows, int64_t width);
int attncl__row_class(int64_t width); // TUNE_NARROW or TUNE_WIDE
// Whether rows have one work-item each.
bool attncl__row_is_one_items(const struct device_caps *caps, int64_t width);
// An upper bound of a work-item's iterations over `rows` rows, which `lanes` of them share.
int64_t attncl__row_iterations(int64_t rows, int64_t width, unsigned vw, size_t lanes);

// Work-groups that share `width` elements.  CPU variant: one work-item each, wide vectors; GPU
// variant: single elements.
struct group_launch {
    struct kspec spec; // VW and LS are set
    size_t local;
    unsigned vw;
};
struct group_launch attncl__group_launch(const struct device_caps *caps, const char *file,
                                         const char *kernel, int64_t width);

// A work-item for each vector of `count` elements; GPU variant: work-groups of 64.
struct item_launch {
    struct kspec spec; // VW and LS are set
    struct grid grid;
};
struct item_launch attncl__item_launch(const struct device_caps *caps, const char *file,
                                       const char *kernel, int64_t count);

// A row kernel in which several work-items share a row (cl/common/row_tiling.clh).
struct row_problem {
    struct kspec spec; // begun, with the macros that are the op's own
    int64_t rows, width;
    int arrays; // whose share of a row a work-item keeps in registers; 0: it reads each element once
    bool float4_aligned; // attncl__rows_are_float4_aligned() of each array
};
struct row_launch attncl__choose_row_tiling(struct launcher *l, const struct row_problem *w);

// Completes the macros of a kernel of such a file that does not share rows, in work-groups of `group` work-items.
void attncl__no_row_sharing(struct kspec *spec, size_t group);

// Whether rows consist of whole float4s, aligned if the first is: start and stride are the array's.
bool attncl__rows_are_float4_aligned(int64_t start, const struct rows *rows);

// A launch over `count` elements: each work-group takes `per_group` consecutive ones.
struct elementwise_launch {
    struct kspec spec; // VW and LS are set
    struct grid grid;
    int64_t per_group;
    unsigned vw;
};
struct elementwise_launch attncl__elementwise_launch(const struct device_caps *caps,
                                                     const char *file, const char *kernel,
                                                     int64_t count);

#endif
