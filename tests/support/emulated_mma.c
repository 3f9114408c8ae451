// SPDX-License-Identifier: MIT

#include "support/emulated_mma.h"

#include <string.h>

#include "support/sources.h"
#include "support/test.h"

bool emulated_mma_caps(const attncl_context *ctx, enum matrix_instruction mma,
                       enum gemm_precision precision, struct device_caps *caps)
{
    *caps = ctx->caps;
    caps->variant = VARIANT_GPU;
    caps->vector_width = 4;
    caps->mma_candidate = mma;
    caps->mma_emulated = true;
    caps->precision = precision;
    return caps->max_group >= 256 && caps->max_loop_iterations == 0;
}

void check_mma_judged(attncl__mma_judge_fn judge, enum matrix_instruction mma,
                      enum gemm_precision precision, bool emulated, double min_speed,
                      const char *words)
{
    attncl_context *ctx = findings_context();
    struct device_caps caps;
    char failed[FINDING_BYTES] = "nothing was written";

    if (emulated_mma_caps(ctx, mma, precision, &caps)) {
        caps.mma_emulated = emulated;
        ck_ok(judge(ctx, &caps, min_speed, failed));
        if (words)
            ck_assert_msg(strstr(failed, words) != NULL, "\"%s\" lacks \"%s\"", failed, words);
        else
            ck_assert_str_eq(failed, "");
    }
    ck_ok(attncl_context_destroy(ctx));
}

bool emulate_mma(enum mma_kernels kernels, enum matrix_instruction mma,
                 enum gemm_precision precision)
{
    attncl_context *ctx = test_context();

    for (int k = 0; k < N_MMA_KERNELS; ++k)
        for (int i = 0; i < N_GEMM_PRECISIONS; ++i) {
            ctx->mma_known[k][i] = true;
            ctx->mma_usable[k][i] = k == (int)kernels;
        }
    return emulated_mma_caps(ctx, mma, precision, &ctx->caps);
}
