// SPDX-License-Identifier: MIT
// A matrix instruction for which local memory stands, on any device.
#ifndef ATTNCL_TEST_EMULATED_MMA_H
#define ATTNCL_TEST_EMULATED_MMA_H

#include "device/context.h"

// The test's device takes the GPU variant, and of all kernels by matrix instructions the given ones alone.  False
// where its work-groups are too small.
bool emulate_mma(enum mma_kernels kernels, enum matrix_instruction mma,
                 enum gemm_precision precision);

#define BOTH_MMA_TEST(name) LOOP_TEST(name, MMA_PTX, MMA_MFMA + 1)

#endif
