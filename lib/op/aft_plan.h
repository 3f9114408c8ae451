// SPDX-License-Identifier: MIT
// How the mixing op is cut up on a device: blocks of rows, lanes of channels, slices, scratch.
#ifndef ATTNCL_OP_AFT_PLAN_H
#define ATTNCL_OP_AFT_PLAN_H

#include "op/op.h"

enum aft_input { AFT_IN_Q, AFT_IN_K, AFT_IN_V, AFT_IN_BIAS, AFT_IN_MASK };

// Forms of the kernels, see their macro tables: CPU, then GPU.
enum { AFT_ROWS = 12, AFT_PANEL = 8, AFT_SOURCE_GROUP = 4 };
enum { AFT_BLOCK = 16, AFT_TARGETS = 8, AFT_CHUNK = 8 };

// The problem as kernels see it: rows of `channels`, `batch` to a step.  Batch entries fold into
// the channels when all is contiguous; with a mask of their own each is a series of launches.
struct aft_plan {
    bool cpu, masked, folded;
    int64_t steps, batch, channels, series, window;
    int64_t lanes, slice; // lanes of VW channels; those of a slice
    int64_t blocks, panels;
    int64_t group, segment; // CPU: lanes of a work-item, source blocks packed at a time
    int64_t lane_floats, ranges_at, before_at, after_at; // CPU: scratch of one lane
    size_t weights_bytes, parked_bytes;                  // CPU: local memory
    unsigned vw;
    size_t local; // work-items of a group
};

// The inputs are not empty.
struct aft_plan attncl__aft_plan(const struct op_sig *sig);

#endif
