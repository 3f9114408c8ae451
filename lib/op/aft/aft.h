// SPDX-License-Identifier: MIT
// The mixing op of attention-free transformers on a device.
#ifndef ATTNCL_OP_AFT_AFT_H
#define ATTNCL_OP_AFT_AFT_H

#include "op/op.h"

// -- aft_tiling.c: blocks of rows, lanes of channels, channel blocks, scratch

enum aft_input { AFT_IN_Q, AFT_IN_K, AFT_IN_V, AFT_IN_BIAS, AFT_IN_MASK };
// Three more inputs of the gradient op; g is the gradient of y.
enum aft_bwd_input { AFT_IN_Y = AFT_IN_MASK + 1, AFT_IN_LOG, AFT_IN_G };
// log [T, B, C]: the logarithm of each sum of weights, saved for the gradients.
enum aft_output { AFT_OUT_Y, AFT_OUT_LOG };

// Must match the kernels.  CPU variant: ROWS, PANEL and GROUP in cl/aft/aft_cpu.clh, ROWS and GROUP
// in aft_simple.cl.  GPU variant: BLOCK in cl/common/aft.clh, the largest TARGETS of aft_gpu.cl.
enum { AFT_ROWS = 12, AFT_PANEL = 8, AFT_SOURCE_GROUP = 4 };
enum { AFT_SIMPLE_ROWS = 64, AFT_SIMPLE_GROUP = 4 };
enum { AFT_BLOCK = 16, AFT_TARGETS = 8 };

// Work-group shape of aft_gpu_band; its macro table explains the fields.  TY * ROWS divides
// AFT_TILE, and a work-group has at least AFT_TILE_LANES lanes.
struct aft_tile_config {
    int rows, item_lanes, tx, ty, keys;
};
enum { AFT_TILE = 64, AFT_TILE_LANES = 8, AFT_MIN_ROWS = 8 };

// Without heads: keys [T, B, C] and one table of biases.  With heads: keys [T, B, H] and, for each
// head, a row of biases by distance.
struct aft_variant {
    int64_t heads;                           // 0: a key for each channel
    int64_t window;                          // rows closer than this have a bias, others 0
    int64_t bias_start, bias_row, bias_head; // offset of (0, 0); strides to the next target, head
    bool causal;
};

// The problem as kernels see it: `steps` times `batch` rows of `channels`.  Batch entries fold into
// the channels when everything is contiguous.  Each head, and each batch entry with its own mask,
// is a separate series of launches.
struct aft_tiling {
    struct aft_variant variant;
    bool cpu, masked, folded, per_head;
    bool simple; // neither biases nor a mask; then the last block has no rows
    int64_t steps, batch, channels, window;
    int64_t heads, entries;     // heads times batch entries are the series of launches
    int64_t lanes, block_lanes; // lanes of VW channels: in all, and in a channel block
    int64_t blocks;             // blocks of rows
    int64_t block_floats;       // scratch of a channel block, in floats
    unsigned vw;
    size_t local;       // work-items of a work-group
    int64_t iterations; // upper bound of one work-item's loop iterations
    // Packed weights, unless `simple` or masked on a GPU.
    int64_t weights_at;  // their offset in the scratch, in floats
    int64_t weight_rows; // target rows whose weights fit
    int64_t pitch;       // GPU: sources per target row; CPU: floats per block of target rows
    union {
        struct { // CPU variant, and `simple` in both
            int64_t lane_floats, ranges_at, before_at, after_at; // scratch of one lane
            int64_t panels, group, item_blocks; // group, item_blocks: lanes, blocks per work-item
        };
        struct {                                // GPU variant without a mask
            const struct aft_tile_config *tile; // NULL: none runs
            int64_t flags_at;
        };
    };
};

// The forward op and its gradient op have the same first inputs and parameters; both call these.
struct aft_variant attncl__aft_variant(const struct op_sig *sig);
// The inputs are not empty.
struct aft_tiling attncl__aft_choose_tiling(const struct op_sig *sig);

// Work-group size of decode kernels on GPUs.  They are short: one warp or wave.
size_t attncl__aft_step_group_size(const struct device_caps *caps);

enum { AFT_MAX_LENGTH = 1 << 30 }; // limit of T and of B C: kernels double them as ints

// Checks for infer: the heads of k divide the channels; input i holds biases for them, or [n, n].
attncl_status attncl__aft_check_heads(const struct op_sig *sig);
attncl_status attncl__aft_check_bias(const struct op_sig *sig, int i, bool per_head);
attncl_status attncl__aft_infer(struct op_sig *sig);
// A decoder's state: inputs `keys` and keys + 1 have max(window, 1) rows of B C.
attncl_status attncl__aft_check_state(const struct op_sig *sig, int keys, int64_t window);
struct aft_variant attncl__aft_filter_variant(const struct tensor_desc *w, int64_t heads);

// -- one channel block of one series, forward or backward: its kernels' arguments

// Rows [T, batch] of channels; start and stride in floats.
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
    struct aft_matrix result;                  // y; backward: dk
    int64_t result_offset;                     // backward: floats before dk in its memory
    struct span second_result;                 // log, absent unless saved; backward: dv
    bool save_log;
    struct span scratch, bias, mask;
    int64_t bias_start, bias_row;
    int64_t mask_start, mask_row, mask_column;
    int64_t lane0, lanes;
    int causal;
};

struct kspec attncl__aft_spec(const struct aft_tiling *p, const char *file, const char *kernel);

// Rows of input i for batch entry `b` (all entries if folded), from the head's first channel or key.
struct aft_matrix attncl__aft_input(const struct op_call *call, const struct aft_tiling *p, int i,
                                    int64_t head, int64_t b);
// A series' forward pass, with targets and results still to be set.
struct aft_channel_block attncl__aft_forward_block(const struct op_call *call,
                                                   const struct aft_tiling *p, int64_t head,
                                                   int64_t b);

// CPU variant (aft_cpu.c): packs the channel block's sources into the scratch; runs all its passes.
attncl_status attncl__aft_launch_packing(struct launcher *l, const struct aft_channel_block *s);
attncl_status attncl__aft_launch_cpu(struct launcher *l, const struct aft_channel_block *s);

// GPU variant (aft_gpu.c): finds work-groups that the device runs; runs a channel block's passes.
void attncl__aft_gpu_fit_work_groups(struct launcher *l, struct aft_tiling *p, bool backward);
attncl_status attncl__aft_launch_gpu(struct launcher *l, const struct aft_channel_block *s);

// Both variants without biases and mask (aft_simple.c).
void attncl__aft_simple_fit_work_groups(struct launcher *l, struct aft_tiling *p, bool backward);
attncl_status attncl__aft_launch_simple(struct launcher *l, const struct aft_channel_block *s);

static inline attncl_status attncl__aft_launch_channel_block(struct launcher *l,
                                                             const struct aft_channel_block *s)
{
    return s->p->simple ? attncl__aft_launch_simple(l, s)
           : s->p->cpu  ? attncl__aft_launch_cpu(l, s)
                        : attncl__aft_launch_gpu(l, s);
}

static inline void attncl__aft_fit_work_groups(struct launcher *l, struct aft_tiling *p,
                                               bool backward)
{
    if (p->simple)
        attncl__aft_simple_fit_work_groups(l, p, backward);
    else if (!p->cpu)
        attncl__aft_gpu_fit_work_groups(l, p, backward);
}

// Block sums in a channel block's scratch: lane l begins at l * lane_stride and is [blocks][3][step].
struct aft_sums_layout {
    int64_t lane_stride, step, before, after;
};
struct aft_sums_layout attncl__aft_sums_layout(const struct aft_channel_block *s);

// Turns the block sums into sums over all earlier blocks and, if needed, over all later blocks.
attncl_status attncl__aft_launch_scan(struct launcher *l, const struct aft_channel_block *s);

// Arguments that depend on the direction: SOURCE_PARAMS and TARGET_PARAMS of cl/aft/aft_source.clh.
void attncl__aft_add_source_args(struct arg_list *to, const struct aft_channel_block *s);
void attncl__aft_add_target_args(struct arg_list *to, const struct aft_channel_block *s);

#define AFT_MATRIX(m) arg_mem((m).span), arg_i64((m).start), arg_i64((m).stride)
#define AFT_RANGE(s)                                                                               \
    arg_i32((s)->p->steps), arg_i32((s)->p->batch), arg_i32((s)->p->channels),                     \
        arg_i32((s)->lane0), arg_i32((s)->lanes)
#define AFT_BIAS(s)                                                                                \
    arg_mem((s)->bias), arg_i64((s)->bias_start), arg_i32((s)->bias_row), arg_mem((s)->mask),      \
        arg_i64((s)->mask_start), arg_i64((s)->mask_row), arg_i32((s)->mask_column)

// -- aft_bwd_passes.c: the small passes around the gradients

// Computes dq, output 0 of aft_bwd.
attncl_status attncl__aft_bwd_launch_gate(struct launcher *l, const struct op_call *call);

// Writes the biases with queries and keys swapped to the scratch.
attncl_status attncl__aft_bwd_launch_bias_reversal(struct launcher *l, const struct op_call *call,
                                                   const struct aft_tiling *p,
                                                   int64_t reversed_bias_at);

// Sums `count` rows of `n` columns or, with `down`, `count` columns of `n` rows.
struct aft_sums {
    struct span x, y;
    int64_t x_start, x_row, y_start;
    int64_t n, count;
    bool down;
};
attncl_status attncl__aft_bwd_launch_sums(struct launcher *l, const struct aft_sums *s);

// -- aft_bwd_table.c: the gradient of the biases, sums over channels for each pair of a query and a key

// One series' forward and backward passes, and the table that receives its dw.
struct aft_series {
    struct aft_channel_block forward, backward;
    struct span table;
    int64_t table_start, table_row;
};

// Add to dw.  CPU variant: the channel block of `forward`, overwriting its scratch.  GPU variant:
// all channels.
attncl_status attncl__aft_bwd_launch_table(struct launcher *l, const struct aft_series *s);
attncl_status attncl__aft_bwd_launch_pairs(struct launcher *l, const struct aft_series *s);

#endif
