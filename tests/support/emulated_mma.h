// SPDX-License-Identifier: MIT
// A matrix instruction for which local memory stands, on any device.
#ifndef ATTNCL_TEST_EMULATED_MMA_H
#define ATTNCL_TEST_EMULATED_MMA_H

#include "gemm/mma_choice.h"

// The test's device takes the GPU variant, and of all kernels by matrix instructions the given ones alone.  False
// where its work-groups are too small.
bool emulate_mma(enum mma_kernels kernels, enum matrix_instruction mma,
                 enum gemm_precision precision);

// The same of `caps`, a copy of the context's.
bool emulated_mma_caps(const attncl_context *ctx, enum matrix_instruction mma,
                       enum gemm_precision precision, struct device_caps *caps);
// In a findings_context(): the comparison finds no fault, words NULL, or says so.
void check_mma_judged(attncl__mma_judge_fn judge, enum matrix_instruction mma,
                      enum gemm_precision precision, bool emulated, double min_speed,
                      const char *words);

#define BOTH_MMA_TEST(name) LOOP_TEST(name, MMA_PTX, MMA_MFMA + 1)

#endif
