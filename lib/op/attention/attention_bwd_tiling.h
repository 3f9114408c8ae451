// SPDX-License-Identifier: MIT
// Tiling of the gradients of attention on a device: blocks of queries, splits, scratch, local memory.
#ifndef ATTNCL_OP_ATTENTION_ATTENTION_BWD_TILING_H
#define ATTNCL_OP_ATTENTION_ATTENTION_BWD_TILING_H

#include "op/attention/attention_tiling.h"

// GPU variant: work-items of a work-group, and what it takes of local memory.
enum { ATT_BWD_GROUP = 128, ATT_BWD_LOCAL_BYTES = 26 * 1024 };

// Tiling of the CPU variant, besides the forward pass's: splits of a head that have sums of their
// own, and places in the scratch, in floats.
struct backward_tiling {
    struct attention_tiling p;
    int64_t n_splits, tile_keys, key_pitch, value_pitch;
    int64_t values_at, rows_at, dk_at, dv_at, floats;
    int64_t local; // floats of local memory
    // GPU variant: heads whose ds is kept at the same time, 0: it is computed again for dq; where it is, in
    // floats, and how far apart its rows are.
    int64_t kept_heads, ds_at, ds_pitch;
};

// ERR_UNSUPPORTED when the device cannot hold a block or would exceed its iteration cap.
attncl_status attncl__attention_bwd_tiling(const struct op_sig *sig, struct backward_tiling *ret);

#endif
