// SPDX-License-Identifier: MIT

#include "support/emulated_mma.h"

#include <stdio.h>

#include "base/alloc.h"
#include "launch/launch.h"
#include "support/sources.h"
#include "support/test.h"

bool emulated_mma_caps(attncl_context *ctx, enum matrix_instruction mma,
                       enum gemm_precision precision, struct device_caps *caps)
{
    if (!ctx->caps.tuned)
        ctx->caps.tuned = attncl__alloc_zero(sizeof *ctx->caps.tuned);
    for (int class = TUNE_OF_GEMM; class <= TUNE_OF_ATTENTION; ++class) {
        struct tune_entry *entry = &ctx->caps.tuned->entries[TUNE_THREE_TERMS][class];
        entry->line = 1;
        entry->value[THREE_TERMS_USED] = 1;
    }
    *caps = ctx->caps;
    caps->variant = VARIANT_GPU;
    caps->vector_width = 4;
    caps->mma_candidate = mma;
    caps->precision = precision;
    return caps->max_group >= 256 && caps->max_loop_iterations == 0;
}

bool emulate_mma(int mma, enum gemm_precision precision)
{
    static const char *const probes[] = {"mma gemm", "mma attention", "mma attention gradients"};
    static const char *const precisions[] = {"f32", "tf32", "bf16"};
    attncl_context *ctx = test_context();
    char name[PROBE_NAME_BYTES];

    for (size_t k = 0; k < COUNT_OF(probes); ++k)
        for (size_t i = 0; i < COUNT_OF(precisions); ++i) {
            snprintf(name, sizeof name, "%s %s", probes[k], precisions[i]);
            attncl__probe_remember(ctx, name, k > 0 ? PROBE_PASSED : PROBE_FAILED, "");
        }
    sources_emulate = true;
    return emulated_mma_caps(ctx, (enum matrix_instruction)mma, precision, &ctx->caps);
}
