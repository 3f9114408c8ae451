// SPDX-License-Identifier: MIT
//
// The inner step of an AFT layer without heads (aft_step.c), for the fused step.

#include "op/fused/fused.h"

static int64_t granule(const struct op_sig *sig)
{
    return sig->caps->vector_width;
}

static void macros(const struct op_sig *sig, struct kspec *spec)
{
    kspec_set_stored(spec, "CACHE_TYPE", sig->in[FUSED_KEYS].dtype);
}

static void args(const struct op_call *call, struct arg_list *to)
{
    const struct fused_step_fwd_params *params = call->sig.params;
    const struct tensor_desc *pos_bias = &call->sig.in[FUSED_POS_BIAS];
    const bool biased = attncl__desc_present(pos_bias) && params->aft.window > 0;

    arg_list_add(to, ARGS(arg_mem(call->in[FUSED_POS_BIAS]),
                          arg_i32(biased ? pos_bias->dim[0] : INT32_MAX),
                          arg_i32(biased ? params->aft.window : 0),
                          arg_mem(call->in[FUSED_POSITION]), arg_mem(call->in[FUSED_SUMS]),
                          arg_mem(call->in[FUSED_KEYS]), arg_mem(call->in[FUSED_VALUES])));
}

static void cost(const struct op_sig *sig, double *flop, double *bytes)
{
    const struct fused_step_fwd_params *params = sig->params;
    const double count = (double)(attncl__fused_step_rows(sig) * attncl__fused_step_channels(sig));

    *flop += count * (40 + 20 * (double)params->aft.window);
    *bytes += count * (4 * 12 + 3 * (double)attncl_dtype_bytes(sig->in[FUSED_KEYS].dtype) *
                                    (double)params->aft.window);
}

const struct inner_step attncl__inner_aft = {
    .file = "fused/fused_step_cpu_aft.cl",
    .kernel = "fused_step_cpu_aft",
    .name = "AFT",
    .n_projections = 3,
    .granule = granule,
    .macros = macros,
    .args = args,
    .cost = cost,
};
