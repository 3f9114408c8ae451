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
enum { AFT_BLOCK = 16, AFT_TARGETS = 8, AFT_CHUNK = 8, AFT_SCAN_LOOKAHEAD = 8 };

// Shape of a work-group of aft_local_band, as in its macro table.  TY * ROWS divides AFT_TILE, and
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
    int path; // the CPU kernel's PATH: 0 but in tests
};

// The problem as kernels see it: rows of `channels`, `batch` to a step.  Batch entries fold into
// the channels when all is contiguous; with a mask of their own each is a series of launches, and
// so is each head.
struct aft_tiling {
    bool cpu, masked, folded, per_head;
    int64_t steps, batch, channels, window;
    int64_t heads, entries;     // series of launches: heads times batch entries
    int64_t lanes, block_lanes; // lanes of VW channels; those of a channel block
    int64_t blocks, panels;
    int64_t group, segment; // CPU: lanes of a work-item, source blocks packed at a time
    int64_t lane_floats, ranges_at, before_at, after_at; // CPU: scratch of one lane
    size_t weights_bytes, spill_bytes;                   // CPU: local memory
    // GPU variant without a mask: the tile chosen, NULL where none runs or none is wanted; where
    // flags and weights begin in the scratch; sources that a row's weights are for; rows whose
    // weights fit.
    const struct aft_tile_config *tile;
    int64_t flags_at, weights_at, pitch, weight_rows;
    int64_t block_floats; // scratch of a channel block
    unsigned vw;
    size_t local;       // work-items of a work-group
    int64_t iterations; // of the loops of one work-item, at the most
};

// Of the forward ops and of their gradients.
struct aft_variant attncl__aft_local_variant(const struct op_sig *sig);
struct aft_variant attncl__aft_conv_variant(const struct op_sig *sig);

// The inputs are not empty.
struct aft_tiling attncl__aft_tiling(const struct op_sig *sig, const struct aft_variant *variant);

// The op's scratch and its kernels (aft_mix.c).
attncl_status attncl__aft_scratch(const struct op_sig *sig, const struct aft_variant *variant,
                                  size_t *bytes_ret);
attncl_status attncl__aft_launch(struct launcher *l, const struct op_call *call,
                                 const struct aft_variant *variant);
// A pair of rows inside the window: weight times (1, v), added; each element: two exponentials.
void attncl__aft_cost(const struct op_sig *sig, const struct aft_variant *variant, double *flop_ret,
                      double *bytes_ret);

// What is asked of q, v and the mask; `causal` is not with a mask.
enum { AFT_MAX_LENGTH = 1 << 30 }; // of T, and of B C: kernels count them with ints and double them
attncl_status attncl__aft_check(const struct op_sig *sig, bool causal);

// y and, where gradients read it, log.
attncl_status attncl__aft_infer(struct op_sig *sig);

// Gradients (aft_mix_bwd.c): inputs and outputs dq, dk, dv and, with biases, dw.  The forward op's
// own checks come first.
attncl_status attncl__aft_bwd_infer(struct op_sig *sig);
attncl_status attncl__aft_bwd_scratch(const struct op_sig *sig, const struct aft_variant *variant,
                                      size_t *bytes_ret);
attncl_status attncl__aft_bwd_launch(struct launcher *l, const struct op_call *call,
                                     const struct aft_variant *variant);
void attncl__aft_bwd_cost(const struct op_sig *sig, const struct aft_variant *variant,
                          double *flop_ret, double *bytes_ret);

// AFT-conv's biases [H, s], s odd, and the variant they define.
attncl_status attncl__aft_check_filter(const struct tensor_desc *w, int64_t channels,
                                       int64_t heads);
struct aft_variant attncl__aft_filter_variant(const struct tensor_desc *w, int64_t heads);

#endif
