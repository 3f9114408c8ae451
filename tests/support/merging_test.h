// SPDX-License-Identifier: MIT
// What tests of linear maps that merge the parts of attention share (op/fused/merging_linear.h).
#ifndef ATTNCL_TEST_MERGING_TEST_H
#define ATTNCL_TEST_MERGING_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "attncl/attncl.h"

// Whether the device has the map of so many rows from heads of `width` to `out` columns.  Where it does not, the op says so,
// as the compiler of graphs is told before.  A device that runs the parts in no work-group but of one gets the CPU variant's
// ops.
bool device_merges(int64_t batch, int64_t out, int64_t n_heads, int64_t width, int64_t limit,
                   attncl_dtype weight);

#endif
