// SPDX-License-Identifier: MIT

#include "support/emulated_mma.h"

#include "support/test.h"

bool emulate_mma(enum mma_kernels kernels, enum matrix_instruction mma,
                 enum gemm_precision precision)
{
    attncl_context *ctx = test_context();

    ctx->caps.variant = VARIANT_GPU;
    ctx->caps.vector_width = 4;
    ctx->caps.mma_candidate = mma;
    ctx->caps.mma_emulated = true;
    ctx->caps.precision = precision;
    for (int k = 0; k < N_MMA_KERNELS; ++k)
        for (int i = 0; i < N_GEMM_PRECISIONS; ++i) {
            ctx->mma_known[k][i] = true;
            ctx->mma_usable[k][i] = k == (int)kernels;
        }
    return ctx->caps.max_group >= 256 && ctx->caps.max_loop_iterations == 0;
}
