// SPDX-License-Identifier: MIT
// Whether attention, and its gradients, use matrix instructions.
#ifndef ATTNCL_COMPILE_ATTENTION_MMA_CHOICE_H
#define ATTNCL_COMPILE_ATTENTION_MMA_CHOICE_H

#include "device/context.h"

// Sets caps->attention_mma, for caps->precision, to caps->mma_candidate or to none, as
// attncl__gemm_choose_mma() does for GEMMs: compared at first use, then known.  Any thread.
void attncl__attention_choose_mma(attncl_context *ctx, struct device_caps *caps);
// The same of caps->attention_bwd_mma, for the gradients.
void attncl__attention_bwd_choose_mma(attncl_context *ctx, struct device_caps *caps);

// The comparison alone.  `failed`: why attention with caps->mma_candidate is not used, "" where it is.
attncl_status attncl__attention_mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                          double min_speed, char failed[FINDING_BYTES]);
attncl_status attncl__attention_bwd_mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                              double min_speed, char failed[FINDING_BYTES]);

#endif
