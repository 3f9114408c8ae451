// SPDX-License-Identifier: MIT
//
// Gradients of AFT-conv.  No kernel: lib/op/aft/aft_mix_bwd.c has the formulas and launches them.

#include "op/aft/aft_tiling.h"

// Checks what the forward op takes; its result is y.
static attncl_status bwd_infer(struct op_sig *sig)
{
    TRY(attncl__op_aft_conv_fwd.infer(sig));
    return attncl__aft_bwd_infer(sig);
}

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_conv_variant(sig);
    return attncl__aft_bwd_scratch(sig, &variant, bytes_ret);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct aft_variant variant = attncl__aft_conv_variant(&call->sig);
    return attncl__aft_bwd_launch(l, call, &variant);
}

static void bwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_conv_variant(sig);
    attncl__aft_bwd_cost(sig, &variant, flop_ret, bytes_ret);
}

const struct op_class attncl__op_aft_conv_bwd = {
    .name = "aft_conv_bwd",
    .params_bytes = sizeof(struct aft_conv_bwd_params),
    .n_in = 8,
    .n_out = 4,
    .optional = 1u << AFT_IN_MASK,
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .cost = bwd_cost,
};
