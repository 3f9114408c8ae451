// SPDX-License-Identifier: MIT
//
// The inner step of a feed-forward network, for the fused step: the activation of a block of
// hidden units.

#include "op/fused/fused.h"

static int64_t granule(const struct op_sig *sig)
{
    return sig->caps->vector_width;
}

static void macros(const struct op_sig *sig, struct kspec *spec)
{
    const struct fused_step_fwd_params *params = sig->params;
    kspec_int(spec, "ACT", params->activation);
}

const struct inner_step attncl__inner_ffn = {
    .file = "fused/fused_step_cpu_ffn.cl",
    .kernel = "fused_step_cpu_ffn",
    .name = "a feed-forward network",
    .n_projections = 1,
    .granule = granule,
    .macros = macros,
};
