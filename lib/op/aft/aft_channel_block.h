// SPDX-License-Identifier: MIT
// One channel block of one series of the mixing op, in either direction: what its kernels are
// given.
#ifndef ATTNCL_OP_AFT_AFT_CHANNEL_BLOCK_H
#define ATTNCL_OP_AFT_AFT_CHANNEL_BLOCK_H

#include "op/aft/aft_tiling.h"

// Rows [T, batch] of channels.
struct aft_matrix {
    struct span span;
    int64_t start, stride;
};

enum { AFT_SOURCES = 4, AFT_MAX_TARGETS = 2 };

struct aft_channel_block {
    const struct aft_tiling *p;
    bool backward;
    struct aft_matrix source[AFT_SOURCES];     // k, v; backward: log, q, y, g
    struct aft_matrix target[AFT_MAX_TARGETS]; // q; backward: k, v
    struct aft_matrix to;                      // y; backward: dk
    int64_t to_at;                             // backward: where dk begins in its memory
    struct span to_too;                        // log, absent unless kept; backward: dv
    bool keep;
    struct span scratch, bias, mask;
    int64_t bias_start, bias_row;
    int64_t mask_start, mask_row, mask_column;
    int64_t lane0, lanes;
    int causal;
};

struct kspec attncl__aft_spec(const struct aft_tiling *p, const char *file, const char *kernel);

// A tensor's rows of batch entry `b` (all, when entries are folded), from channel `first` on.
struct aft_matrix attncl__aft_matrix(const struct aft_tiling *p, const struct tensor_desc *x,
                                     struct span span, int64_t b, int64_t first);

// CPU variant (aft_cpu.c): packs the channel block's sources in the scratch; all its passes.
attncl_status attncl__aft_sources(struct launcher *l, const struct aft_channel_block *s);
attncl_status attncl__aft_cpu(struct launcher *l, const struct aft_channel_block *s);

// GPU variant (aft_gpu.c): finds which work-groups the device runs; all passes of a channel block.
void attncl__aft_gpu_fit(struct launcher *l, struct aft_tiling *p, bool backward);
attncl_status attncl__aft_gpu(struct launcher *l, const struct aft_channel_block *s);

// Both variants without biases and mask (aft_simple.c).
void attncl__aft_simple_fit(struct launcher *l, struct aft_tiling *p, bool backward);
attncl_status attncl__aft_simple(struct launcher *l, const struct aft_channel_block *s);

static inline attncl_status attncl__aft_launch_channel_block(struct launcher *l,
                                                             const struct aft_channel_block *s)
{
    return s->p->simple ? attncl__aft_simple(l, s)
           : s->p->cpu  ? attncl__aft_cpu(l, s)
                        : attncl__aft_gpu(l, s);
}

// Finds which work-groups the device runs.
static inline void attncl__aft_fit(struct launcher *l, struct aft_tiling *p, bool backward)
{
    if (p->simple)
        attncl__aft_simple_fit(l, p, backward);
    else if (!p->cpu)
        attncl__aft_gpu_fit(l, p, backward);
}

// Where a channel block's scratch has the sums of blocks: lane l at l * lane_stride, in it [blocks][3][step].
struct aft_sums_layout {
    int64_t lane_stride, step, before, after;
};
struct aft_sums_layout attncl__aft_sums_layout(const struct aft_channel_block *s);

// Sums of blocks become sums of all before and, where rows want those too, after each.
attncl_status attncl__aft_scan(struct launcher *l, const struct aft_channel_block *s);

// A kernel's arguments: those that depend on the direction first (SOURCE_PARAMS and TARGET_PARAMS
// of cl/aft/aft_source.clh).
enum { AFT_MAX_ARGS = 64 };
struct aft_args {
    struct arg arg[AFT_MAX_ARGS];
    size_t n;
};
void attncl__aft_put(struct aft_args *to, const struct arg *args, size_t n);
void attncl__aft_put_sources(struct aft_args *to, const struct aft_channel_block *s);
void attncl__aft_put_targets(struct aft_args *to, const struct aft_channel_block *s);

#define AFT_MATRIX(m) arg_mem((m).span), arg_i64((m).start), arg_i64((m).stride)
#define AFT_RANGE(s)                                                                               \
    arg_i32((s)->p->steps), arg_i32((s)->p->batch), arg_i32((s)->p->channels),                     \
        arg_i32((s)->lane0), arg_i32((s)->lanes)
#define AFT_BIAS(s)                                                                                \
    arg_mem((s)->bias), arg_i64((s)->bias_start), arg_i32((s)->bias_row), arg_mem((s)->mask),      \
        arg_i64((s)->mask_start), arg_i64((s)->mask_row), arg_i32((s)->mask_column)

#endif
