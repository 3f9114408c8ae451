// SPDX-License-Identifier: MIT
// A matrix instruction for which local memory stands, on any device.
#ifndef ATTNCL_TEST_EMULATED_MMA_H
#define ATTNCL_TEST_EMULATED_MMA_H

#include "device/probe.h"

// The test's device takes the GPU variant, and of all kernels by matrix instructions those of attention alone.  False where
// its work-groups are too small.
bool emulate_mma(int mma, enum gemm_precision precision);

// The same of `caps`, a copy of the context's, which gets a tuning table that turns three terms on; the caller sets
// sources_emulate (support/sources.h).
bool emulated_mma_caps(attncl_context *ctx, enum matrix_instruction mma,
                       enum gemm_precision precision, struct device_caps *caps);

#define BOTH_MMA_TEST(name) LOOP_TEST(name, MMA_PTX, MMA_MFMA + 1)

#endif
