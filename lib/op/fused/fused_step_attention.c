// SPDX-License-Identifier: MIT
//
// The inner step of multi-head attention (attention_step.c), for the fused step: blocks are whole
// groups of heads that share their keys.

#include "op/attention/attention_split.h"
#include "op/fused/fused.h"

static int64_t head_width(const struct op_sig *sig)
{
    const struct fused_step_fwd_params *params = sig->params;
    return attncl__fused_step_channels(sig) / params->attention.n_heads;
}

static int64_t group_width(const struct op_sig *sig)
{
    return head_width(sig) * attncl__fused_step_kv_group(sig);
}

// A group's running sums, and states of two floats.
static int64_t local_floats(const struct op_sig *sig)
{
    return group_width(sig) + 2 * attncl__fused_step_kv_group(sig);
}

static void macros(const struct op_sig *sig, struct kspec *spec)
{
    const struct fused_step_fwd_params *params = sig->params;
    kspec_set_stored(spec, "CACHE_TYPE", sig->in[FUSED_KEYS].dtype);
    kspec_int(spec, "SOFTCAP", params->attention.softcap > 0);
    kspec_int(spec, "SLOTS", sig->in[FUSED_POSITION].dim[0] > 1);
    kspec_int(spec, "SLOPES", attncl__desc_present(&sig->in[FUSED_POS_BIAS]));
}

static int64_t span(const struct op_sig *sig)
{
    const struct fused_step_fwd_params *params = sig->params;
    return attncl__step_span(params->attention.window, sig->in[FUSED_KEYS].dim[0]);
}

static void args(const struct op_call *call, struct arg_list *to)
{
    const struct op_sig *sig = &call->sig;
    const struct fused_step_fwd_params *params = sig->params;

    arg_list_add(to, ARGS(arg_i32(head_width(sig)), arg_i32(attncl__fused_step_kv_group(sig)),
                          arg_i32(sig->in[FUSED_KEYS].dim[0]), arg_i32(span(sig)),
                          arg_f32(params->attention.scale), arg_f32(params->attention.softcap),
                          arg_mem(call->in[FUSED_POSITION]), arg_mem(call->in[FUSED_KEYS]),
                          arg_mem(call->in[FUSED_VALUES]),
                          arg_local((size_t)local_floats(sig) * sizeof(float)),
                          arg_mem(call->in[FUSED_POS_BIAS])));
}

// At the last position: earlier ones cost less, but only the device knows which it is.
static void cost(const struct op_sig *sig, double *flop, double *bytes)
{
    const double count = (double)span(sig) *
                         (double)(attncl__fused_step_rows(sig) * attncl__fused_step_channels(sig));

    *flop += 4 * count;
    *bytes += 2 * (double)attncl_dtype_bytes(sig->in[FUSED_KEYS].dtype) * count /
              (double)attncl__fused_step_kv_group(sig);
}

const struct inner_step attncl__inner_attention = {
    .file = "fused/fused_step_cpu_attention.cl",
    .kernel = "fused_step_cpu_attention",
    .name = "attention",
    .n_projections = 3,
    .granule = group_width,
    .local_floats = local_floats,
    .macros = macros,
    .args = args,
    .cost = cost,
};
