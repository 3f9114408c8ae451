// SPDX-License-Identifier: MIT
// Whether GEMMs use matrix instructions.
#ifndef ATTNCL_GEMM_MMA_CHOICE_H
#define ATTNCL_GEMM_MMA_CHOICE_H

#include "device/context.h"

// Sets caps->mma, for caps->precision, to caps->mma_candidate or to none.  At first use on a device
// with this driver it builds kernels and runs them, for about a second; afterwards it knows.  Any
// thread.
void attncl__gemm_choose_mma(attncl_context *ctx, struct device_caps *caps);

// The same for other kernels by matrix instructions: `judge` compares, `failed` as below.
typedef attncl_status (*attncl__mma_judge_fn)(attncl_context *ctx, const struct device_caps *caps,
                                              double min_speed, char failed[FINDING_BYTES]);
enum matrix_instruction attncl__mma_choose(attncl_context *ctx, struct device_caps *caps,
                                           enum mma_kernels kernels, attncl__mma_judge_fn judge);

// The comparison alone.  `failed`: why GEMMs with caps->mma_candidate are not used, "" where they
// are.
attncl_status attncl__mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                double min_speed, char failed[FINDING_BYTES]);

#endif
