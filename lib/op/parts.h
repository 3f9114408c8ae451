// SPDX-License-Identifier: MIT
// What ffn_parts_fwd and aft_parts_fwd share: the residual stream with an addend in parts
// (cl/common/joined_rows.clh), results in parts, slices.
#ifndef ATTNCL_OP_PARTS_H
#define ATTNCL_OP_PARTS_H

#include "op/op.h"

// The first inputs of both.
enum {
    PARTS_X,      // [..., d]
    PARTS_NORM_W, // [d]
    PARTS_NORM_B, // [d]
    PARTS_BEFORE, // [S, m, d], or absent: x is whole
    PARTS_BEFORE_BIAS,
    PARTS_INPUTS
};

// The first outputs: [n_slices, m, d_out]; x', like x, absent where x is whole.
enum { PARTS_RESULT, PARTS_WHOLE };

// m; d
int64_t attncl__parts_rows(const struct op_sig *sig);
int64_t attncl__parts_width(const struct op_sig *sig);

// ERR_SHAPE unless they fit each other; fills both outputs.
attncl_status attncl__parts_infer(struct op_sig *sig, int64_t n_slices, int64_t d_out);

// Whether the kernels run on this device: few rows, every input contiguous, widths of whole
// vectors, `local` floats beside the rows in local memory.
bool attncl__parts_suit(const struct op_sig *sig, const int64_t *widths, int n_widths,
                        int64_t local);

// Slices of `width` for this device, and how wide each but the last is.
int32_t attncl__parts_slices(const struct device_caps *caps, int64_t width);
int64_t attncl__parts_slice(const struct device_caps *caps, int64_t width, int64_t n_slices);

// JOINED_PARAMS and x_whole; the number of arguments.
enum { PARTS_ARGS = 11 };
void attncl__parts_args(const struct op_call *call, float eps, struct arg args[PARTS_ARGS]);

#endif
