// SPDX-License-Identifier: MIT
//
// Attention of one position of a feedback transformer to the memories before it and the linear map of its result, for
// decoding on GPUs: two launches instead of three.
// No kernel: attention_split_gpu.cl leaves parts, which cl/gemm/gemv.cl with MERGE = 1 merges.
//
//   y = act(attention W^T + b) * gate + residual        attention [B, C] as in feedback_attention.c, W [out, C]
//
// Created when a graph is compiled (compile/fusion_attention_linear.c), so that it has no gradient, dropout or weights.

#include "op/fused/fused_feedback_linear.h"

#include <string.h>

// The attention by itself.
struct step {
    struct op_sig sig;
    struct tensor_desc in[N_FEEDBACK_INPUTS];
};

static void step_of(const struct op_sig *sig, struct step *step)
{
    static const struct feedback_attention_fwd_params plain;

    *step = (struct step){.sig = *sig};
    step->sig.params = &plain;
    step->sig.n_in = N_FEEDBACK_INPUTS;
    step->sig.in = step->in;
    memcpy(step->in, sig->in, FEEDBACK_LINEAR_WEIGHT * sizeof step->in[0]);
}

static struct merging_linear map_of(const struct op_sig *sig,
                                    const struct linear_fwd_params *linear)
{
    const struct tensor_desc *keys = &sig->in[FEEDBACK_KEYS];
    return (struct merging_linear){.params = linear,
                                   .query = FEEDBACK_Q,
                                   .weight = FEEDBACK_LINEAR_WEIGHT,
                                   .position = FEEDBACK_POSITION,
                                   .n_heads = keys->dim[2],
                                   .limit = keys->dim[0]};
}

static struct merging_linear map_in(const struct op_sig *sig)
{
    const struct fused_feedback_linear_fwd_params *params = sig->params;
    return map_of(sig, &params->linear);
}

static attncl_status infer(struct op_sig *sig)
{
    const struct merging_linear map = map_in(sig);
    struct step step;

    step_of(sig, &step);
    TRY(attncl__op_feedback_attention_fwd.infer(&step.sig));
    return attncl__merging_linear_infer(sig, &map);
}

bool attncl__feedback_linear_supported(const struct op_sig *sig)
{
    const struct merging_linear map = map_of(sig, NULL);
    return attncl__merging_linear_supported(sig, &map);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct merging_linear map = map_in(&call->sig);
    const struct attention_split parts = attncl__feedback_attention_split(call);
    return attncl__merging_linear_launch(l, call, &map, &parts);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct merging_linear map = map_in(sig);
    double flop, bytes;
    struct step step;

    step_of(sig, &step);
    attncl__op_feedback_attention_fwd.cost(&step.sig, &flop, &bytes);
    attncl__merging_linear_cost(sig, &map, flop_ret, bytes_ret);
    *flop_ret += flop;
    *bytes_ret += bytes;
}

const struct op_class attncl__op_fused_feedback_linear_fwd = {
    .name = OP_CLASS(fused_feedback_linear_fwd, N_FEEDBACK_LINEAR_INPUTS, 1),
    .optional = 1u << FEEDBACK_PLACE_BIAS | 1u << FEEDBACK_LINEAR_BIAS |
                1u << FEEDBACK_LINEAR_GATE | 1u << FEEDBACK_LINEAR_RESIDUAL,
    .strided = 1u << FEEDBACK_Q | 1u << FEEDBACK_LINEAR_WEIGHT | 1u << FEEDBACK_LINEAR_GATE |
               1u << FEEDBACK_LINEAR_RESIDUAL,
    .any_view = 1u << FEEDBACK_KEYS | 1u << FEEDBACK_VALUES,
    .infer = infer,
    .scratch = attncl__feedback_attention_scratch,
    .launch = launch,
    .cost = cost,
};
