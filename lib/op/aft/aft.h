// SPDX-License-Identifier: MIT
// The mixing op of attention-free transformers on a device.
#ifndef ATTNCL_OP_AFT_AFT_H
#define ATTNCL_OP_AFT_AFT_H

#include "op/op.h"

// -- aft_tiling.c: blocks of rows, lanes of channels, channel blocks, scratch

enum aft_input { AFT_IN_Q, AFT_IN_K, AFT_IN_V, AFT_IN_BIAS, AFT_IN_MASK };
// The gradient ops take three more; g is the gradient of y.
enum aft_bwd_input { AFT_IN_Y = AFT_IN_MASK + 1, AFT_IN_LOG, AFT_IN_G };
// log: the logarithms of the sums of weights, [T, B, C], kept for gradients.
enum aft_output { AFT_OUT_Y, AFT_OUT_LOG };

// As the kernels have them.  CPU variant: ROWS, PANEL and GROUP of cl/aft/aft_cpu.clh, ROWS and GROUP of aft_simple.cl.  GPU
// variant: BLOCK of cl/common/aft.clh, TARGETS of aft_gpu.cl, at the most.
enum { AFT_ROWS = 12, AFT_PANEL = 8, AFT_SOURCE_GROUP = 4 };
enum { AFT_SIMPLE_ROWS = 64, AFT_SIMPLE_GROUP = 4 };
enum { AFT_BLOCK = 16, AFT_TARGETS = 8 };

// Shape of a work-group of aft_gpu_band, as in its macro table.  TY * ROWS divides AFT_TILE, and
// a work-group has at least AFT_TILE_LANES lanes.
struct aft_tile_config {
    int rows, item_lanes, tx, ty, keys;
};
enum { AFT_TILE = 64, AFT_TILE_LANES = 8, AFT_MIN_ROWS = 8 };

// What is mixed, of an op's signature: keys [T, B, C] and one table of biases, or, with heads, keys
// [T, B, H] and for each head a row of biases by distance.
struct aft_variant {
    int64_t heads;                           // 0: a key for each channel
    int64_t window;                          // rows closer than this have a bias, others 0
    int64_t bias_start, bias_row, bias_head; // where the table has (0, 0); to the next target; head
    bool causal;
};

// The problem as kernels see it: rows of `channels`, `batch` to a step.  Batch entries fold into
// the channels when all is contiguous; with a mask of their own each is a series of launches, and
// so is each head.
struct aft_tiling {
    struct aft_variant variant;
    bool cpu, masked, folded, per_head;
    bool simple; // neither biases nor a mask; a last block has no rows
    int64_t steps, batch, channels, window;
    int64_t heads, entries;     // series of launches: heads times batch entries
    int64_t lanes, block_lanes; // lanes of VW channels; those of a channel block
    int64_t blocks;
    int64_t block_floats; // scratch of a channel block
    unsigned vw;
    size_t local;       // work-items of a work-group
    int64_t iterations; // of the loops of one work-item, at the most
    // Unless `simple`, in the GPU variant without a mask.  Weights of target rows: where they begin in
    // the scratch; rows whose weights fit; sources that a row's weights are for, in the CPU variant
    // floats of a block of rows.
    int64_t weights_at, weight_rows, pitch;
    union {
        struct { // CPU variant, and `simple` in both
            int64_t lane_floats, ranges_at, before_at, after_at; // scratch of one lane
            int64_t panels, group, item_blocks; // lanes and target blocks of a work-item
        };
        struct { // GPU variant without a mask: the tile, NULL where none runs; where flags begin
            const struct aft_tile_config *tile;
            int64_t flags_at;
        };
    };
};

// Of the forward op and of its gradient, whose inputs and parameters begin alike.
struct aft_variant attncl__aft_variant(const struct op_sig *sig);
// The inputs are not empty.
struct aft_tiling attncl__aft_tiling(const struct op_sig *sig);

// Work-items of a group of decoding's kernels on GPUs, which are short: a warp or a wave.
size_t attncl__aft_step_group(const struct device_caps *caps);

enum { AFT_MAX_LENGTH = 1 << 30 }; // of T, and of B C: kernels count them with ints and double them

// For infer.  The heads of k divide the channels; biases fit them, or are a table [n, n].
attncl_status attncl__aft_check_heads(const struct op_sig *sig);
attncl_status attncl__aft_check_bias(const struct op_sig *sig, int i, bool per_head);
attncl_status attncl__aft_infer(struct op_sig *sig); // of the forward and the backward op
// The state of a decoder from input `keys` on, keys and values: window rows, or one, of B C.
attncl_status attncl__aft_check_state(const struct op_sig *sig, int keys, int64_t window);
struct aft_variant attncl__aft_filter_variant(const struct tensor_desc *w, int64_t heads);

// -- one channel block of one series, in either direction: what its kernels are given

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

// An input's rows of batch entry `b` (all, when entries are folded), from a head's first channel or key on.
struct aft_matrix attncl__aft_input(const struct op_call *call, const struct aft_tiling *p, int i,
                                    int64_t head, int64_t b);
// The forward pass of a series, without targets and results.
struct aft_channel_block attncl__aft_forward(const struct op_call *call, const struct aft_tiling *p,
                                             int64_t head, int64_t b);

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

// Arguments that depend on the direction: SOURCE_PARAMS and TARGET_PARAMS of cl/aft/aft_source.clh.
void attncl__aft_put_sources(struct arg_list *to, const struct aft_channel_block *s);
void attncl__aft_put_targets(struct arg_list *to, const struct aft_channel_block *s);

#define AFT_MATRIX(m) arg_mem((m).span), arg_i64((m).start), arg_i64((m).stride)
#define AFT_RANGE(s)                                                                               \
    arg_i32((s)->p->steps), arg_i32((s)->p->batch), arg_i32((s)->p->channels),                     \
        arg_i32((s)->lane0), arg_i32((s)->lanes)
#define AFT_BIAS(s)                                                                                \
    arg_mem((s)->bias), arg_i64((s)->bias_start), arg_i32((s)->bias_row), arg_mem((s)->mask),      \
        arg_i64((s)->mask_start), arg_i64((s)->mask_row), arg_i32((s)->mask_column)

// -- aft_bwd_passes.c: the small passes around the gradients

// dq, output 0 of aft_bwd.
attncl_status attncl__aft_bwd_gate(struct launcher *l, const struct op_call *call);

// Biases as keys see them, into the scratch.
attncl_status attncl__aft_bwd_turn(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, int64_t turned_at);

// Sums of each of `count` rows of `n` columns, or with `down` of each of `count` columns of `n` rows.
struct aft_sums {
    struct span x, y;
    int64_t x_start, x_row, y_start;
    int64_t n, count;
    bool down;
};
attncl_status attncl__aft_bwd_sums(struct launcher *l, const struct aft_sums *s);

// -- aft_bwd_table.c: the gradient of the biases, sums over channels for each pair of a query and a key

// One series in both directions, and where its dw goes.
struct aft_series {
    struct aft_channel_block forward, backward;
    struct span table;
    int64_t table_start, table_row;
};

// CPU variant: adds the channel block of `forward`, whose scratch is overwritten.  GPU variant: adds
// all channels.
attncl_status attncl__aft_bwd_table(struct launcher *l, const struct aft_series *s);
attncl_status attncl__aft_bwd_pairs(struct launcher *l, const struct aft_series *s);

#endif
