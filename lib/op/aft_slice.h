// SPDX-License-Identifier: MIT
// One slice of one series of the mixing op, in either direction: what its kernels are given.
#ifndef ATTNCL_OP_AFT_SLICE_H
#define ATTNCL_OP_AFT_SLICE_H

#include "op/aft_plan.h"

// Rows [T, batch] of channels.
struct aft_matrix {
    struct span span;
    int64_t start, stride;
};

enum { AFT_SOURCES = 4, AFT_TARGETS_MOST = 2 };

struct aft_slice {
    const struct aft_plan *p;
    bool backward;
    struct aft_matrix source[AFT_SOURCES];      // k, v; backward: log, q, y, g
    struct aft_matrix target[AFT_TARGETS_MOST]; // q; backward: k, v
    struct aft_matrix to;                       // y; backward: dk
    int64_t to_at;                              // backward: where dk begins in its memory
    struct span to_too;                         // log, absent unless kept; backward: dv
    bool keep;
    struct span scratch, bias, mask;
    int64_t bias_start, bias_row;
    int64_t mask_start, mask_row, mask_column;
    int64_t lane0, lanes;
    int causal, path;
};

struct kspec attncl__aft_spec(const struct aft_plan *p, const char *file, const char *kernel);

// A tensor's rows of batch entry `b` (all, when entries are folded), from channel `first` on.
struct aft_matrix attncl__aft_matrix(const struct aft_plan *p, const struct tensor_desc *x,
                                     struct span span, int64_t b, int64_t first);

// CPU form: packs the slice's sources in the scratch.
attncl_status attncl__aft_sources(struct launcher *l, const struct aft_slice *s);

// All passes of a slice.
attncl_status attncl__aft_slice(struct launcher *l, const struct aft_slice *s);

// GPU form (aft_groups.c): which groups the device runs, for a form's `path` as the CPU kernel's
// PATH; and its launches of a slice.
void attncl__aft_fit(struct launcher *l, struct aft_plan *p, bool backward, int path);
attncl_status attncl__aft_groups(struct launcher *l, const struct aft_slice *s);

// Sums of blocks become sums of all before and after each.
attncl_status attncl__aft_scan(struct launcher *l, const struct aft_slice *s);

// A kernel's arguments: those that depend on the direction first (SOURCE_PARAMS and TARGET_PARAMS
// of cl/common/aft_source.clh).
enum { AFT_ARGS_MOST = 64 };
struct aft_args {
    struct arg arg[AFT_ARGS_MOST];
    size_t n;
};
void attncl__aft_put(struct aft_args *to, const struct arg *args, size_t n);
void attncl__aft_put_sources(struct aft_args *to, const struct aft_slice *s);
void attncl__aft_put_targets(struct aft_args *to, const struct aft_slice *s);

#define AFT_MATRIX(m) arg_mem((m).span), arg_i64((m).start), arg_i64((m).stride)
#define AFT_RANGE(s)                                                                               \
    arg_i32((s)->p->steps), arg_i32((s)->p->batch), arg_i32((s)->p->channels),                     \
        arg_i32((s)->lane0), arg_i32((s)->lanes)
#define AFT_BIAS(s)                                                                                \
    arg_mem((s)->bias), arg_i64((s)->bias_start), arg_i32((s)->bias_row), arg_mem((s)->mask),      \
        arg_i64((s)->mask_start), arg_i64((s)->mask_row), arg_i32((s)->mask_column)

#endif
