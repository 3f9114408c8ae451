// SPDX-License-Identifier: MIT
// A GPU, for all that the library asks of a context: what is measured at a GPU's first graph is measured on the driver's device.
#ifndef TEST_SUPPORT_PLAYED_GPU_H
#define TEST_SUPPORT_PLAYED_GPU_H

#include "device/context.h"

static inline void play_gpu(attncl_context *ctx)
{
    ctx->caps.is_cpu = false;
    ctx->caps.is_gpu = true;
    ctx->variant_known = true; // its kernels are right
    ctx->variant = VARIANT_GPU;
    ctx->caps.variant = VARIANT_GPU;
    ctx->caps.vector_width = 4;
    ctx->caps.flop_per_second = 1e12;
}

#endif
