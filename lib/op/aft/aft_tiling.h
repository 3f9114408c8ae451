// SPDX-License-Identifier: MIT
// Tiling of the mixing op on a device: blocks of rows, lanes of channels, channel blocks, scratch.
#ifndef ATTNCL_OP_AFT_AFT_TILING_H
#define ATTNCL_OP_AFT_AFT_TILING_H

#include "op/op.h"

enum aft_input { AFT_IN_Q, AFT_IN_K, AFT_IN_V, AFT_IN_BIAS, AFT_IN_MASK };
// The gradient ops take three more; g is the gradient of y.
enum aft_bwd_input { AFT_IN_Y = AFT_IN_MASK + 1, AFT_IN_LOG, AFT_IN_G };
// log: the logarithms of the sums of weights, [T, B, C], kept for gradients.
enum aft_output { AFT_OUT_Y, AFT_OUT_LOG };

// Variants of the kernels, see their macro tables: CPU, then GPU.
enum { AFT_ROWS = 12, AFT_PANEL = 8, AFT_SOURCE_GROUP = 4 };
enum { AFT_SIMPLE_ROWS = 64, AFT_SIMPLE_GROUP = 4 };
enum { AFT_BLOCK = 16, AFT_SCAN_LOOKAHEAD = 8 };
enum { AFT_TARGETS = 8, AFT_CHUNK = 8 }; // at the most

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
    int64_t blocks, panels;
    int64_t group, item_blocks; // CPU: lanes and target blocks of a work-item
    int64_t lane_floats, ranges_at, before_at, after_at; // CPU: scratch of one lane
    // Weights of target rows, in the CPU variant and without a mask in the GPU variant: where they
    // begin in the scratch; rows whose weights fit; sources that a row's weights are for, in the CPU
    // variant floats of a block of rows.
    int64_t weights_at, weight_rows, pitch;
    // GPU variant without a mask: the tile chosen, NULL where none runs or none is wanted; where
    // flags begin.
    const struct aft_tile_config *tile;
    int64_t flags_at;
    int64_t block_floats; // scratch of a channel block
    unsigned vw;
    size_t local;       // work-items of a work-group
    int64_t iterations; // of the loops of one work-item, at the most
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

#endif
