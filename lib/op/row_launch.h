// SPDX-License-Identifier: MIT
// Launch configurations for kernels over rows and over elements.
#ifndef ATTNCL_OP_ROW_LAUNCH_H
#define ATTNCL_OP_ROW_LAUNCH_H

#include "op/op.h"

// The rows of an input that is STRIDED or contiguous.
struct rows attncl__rows(const struct tensor_desc *x);

// Kernel arguments of input i's rows: memory, start, stride.
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
// On a CPU a work-item takes whole rows; if that exceeds the device's iteration cap, and on GPUs, a
// work-group shares a row.
struct row_launch attncl__row_launch(const struct device_caps *caps, const char *file,
                                     const char *kernel, int64_t rows, int64_t width);
int attncl__row_class(int64_t width); // TUNE_NARROW or TUNE_WIDE
// Whether one work-item takes whole rows.
bool attncl__row_fits_work_item(const struct device_caps *caps, int64_t width);
// Upper bound of a work-item's iterations over `rows` rows that `lanes` work-items share.
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
    struct kspec spec; // with the op's own macros
    int64_t rows, width;
    int arrays;          // arrays whose part of a row a work-item keeps in registers; 0: none
    bool float4_aligned; // attncl__rows_are_float4_aligned() for each array
};
struct row_launch attncl__choose_row_tiling(struct launcher *l, const struct row_problem *w);

// Sets the macros of row_tiling.clh for a kernel that shares no rows, in work-groups of `group` work-items.
void attncl__set_no_row_sharing(struct kspec *spec, size_t group);

// Whether rows consist of whole float4s, all aligned if the array's memory is.
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
