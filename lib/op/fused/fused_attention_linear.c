// SPDX-License-Identifier: MIT
//
// One position of causal multi-head attention and the linear map of its result, for decoding on GPUs: two
// launches instead of three.
// No kernel: attention_split_gpu.cl leaves parts, which cl/gemm/gemv.cl with MERGE = 1 merges.
//
//   y = act(attention W^T + b) * gate + residual        attention [B, C] as in attention_step.c, W [out, C]
//
// Created when a graph is compiled (compile/fusion_attention_linear.c), so that it has no gradient.

#include "op/fused/fused_attention_linear.h"

static struct op_sig step_of(const struct op_sig *sig)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    struct op_sig step = *sig;

    step.params = &params->step;
    step.n_in = N_STEP_INPUTS;
    return step;
}

static struct merging_linear map_of(const struct op_sig *sig,
                                    const struct attention_step_fwd_params *step,
                                    const struct linear_fwd_params *linear)
{
    return (struct merging_linear){.params = linear,
                                   .query = STEP_Q,
                                   .weight = ATTENTION_LINEAR_WEIGHT,
                                   .position = STEP_POSITION,
                                   .n_heads = step->n_heads,
                                   .limit = sig->in[STEP_KEYS].dim[0],
                                   .stores = true};
}

static struct merging_linear map_in(const struct op_sig *sig)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    return map_of(sig, &params->step, &params->linear);
}

static attncl_status infer(struct op_sig *sig)
{
    const struct merging_linear map = map_in(sig);
    struct op_sig step = step_of(sig);

    TRY(attncl__op_attention_step_fwd.infer(&step));
    return attncl__merging_linear_infer(sig, &map);
}

static attncl_status scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    return attncl__attention_step_scratch(sig, &params->step, bytes_ret);
}

bool attncl__attention_linear_supported(const struct op_sig *sig,
                                        const struct attention_step_fwd_params *step)
{
    const struct merging_linear map = map_of(sig, step, NULL);
    return attncl__merging_linear_supported(sig, &map);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_attention_linear_fwd_params *params = call->sig.params;
    const struct merging_linear map = map_in(&call->sig);
    const struct attention_split parts = attncl__attention_step_split(call, &params->step);
    return attncl__merging_linear_launch(l, call, &map, &parts);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct merging_linear map = map_in(sig);
    const double limit = (double)map.limit;
    const double element = (double)attncl_dtype_bytes(sig->in[STEP_KEYS].dtype);
    const double rows = (double)sig->in[STEP_Q].dim[0], c = (double)sig->in[STEP_Q].dim[1];

    attncl__merging_linear_cost(sig, &map, flop_ret, bytes_ret);
    *flop_ret += limit * rows * (4 * c + 5 * (double)map.n_heads);
    *bytes_ret += rows * c * (element * (2 * limit + 2) + 12);
}

const struct op_class attncl__op_fused_attention_linear_fwd = {
    .name = OP_CLASS(fused_attention_linear_fwd, N_ATTENTION_LINEAR_INPUTS, 1),
    .optional =
        1u << ATTENTION_LINEAR_BIAS | 1u << ATTENTION_LINEAR_GATE | 1u << ATTENTION_LINEAR_RESIDUAL,
    .strided = 1u << STEP_Q | 1u << STEP_K | 1u << STEP_V | 1u << ATTENTION_LINEAR_WEIGHT |
               1u << ATTENTION_LINEAR_GATE | 1u << ATTENTION_LINEAR_RESIDUAL,
    .state = 1u << STEP_KEYS | 1u << STEP_VALUES,
    .infer = infer,
    .scratch = scratch,
    .launch = launch,
    .cost = cost,
};
