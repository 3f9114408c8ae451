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

#include <string.h>

// The linear map by itself, of a result like q.
struct map {
    struct op_sig sig;
    struct tensor_desc in[N_LINEAR_INPUTS];
};

static void map_of(const struct op_sig *sig, const struct linear_fwd_params *params,
                   struct map *map)
{
    map->sig = *sig;
    map->sig.params = params;
    map->sig.n_in = N_LINEAR_INPUTS;
    map->sig.in = map->in;
    map->in[LINEAR_X] = sig->in[STEP_Q];
    memcpy(&map->in[LINEAR_WEIGHT], &sig->in[ATTENTION_LINEAR_WEIGHT],
           (N_LINEAR_INPUTS - LINEAR_WEIGHT) * sizeof map->in[0]);
}

static struct op_sig step_of(const struct op_sig *sig)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    struct op_sig step = *sig;

    step.params = &params->step;
    step.n_in = N_STEP_INPUTS;
    return step;
}

static attncl_status infer(struct op_sig *sig)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    struct op_sig step = step_of(sig);
    struct map map;

    TRY(attncl__op_attention_step_fwd.infer(&step));
    map_of(sig, &params->linear, &map);
    return attncl__op_linear_fwd.infer(&map.sig);
}

static attncl_status scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    return attncl__attention_step_scratch(sig, &params->step, bytes_ret);
}

// Sizes, no operands.
static struct gemm merging_gemm(const struct op_sig *sig,
                                const struct attention_step_fwd_params *step)
{
    const struct tensor_desc *q = &sig->in[STEP_Q], *keys = &sig->in[STEP_KEYS];
    const struct tensor_desc *weight = &sig->in[ATTENTION_LINEAR_WEIGHT];
    const int64_t limit = keys->dim[0];

    return GEMM_OF(
        1, q->dim[0], weight->dim[0], weight->dim[1], .b_dtype = weight->dtype, .trans_b = true,
        .merge = {.n_heads = step->n_heads,
                  .n_parts = attncl__step_parts(sig->caps, q->dim[0] * step->n_heads, limit),
                  .limit = limit});
}

bool attncl__attention_linear_supported(const struct op_sig *sig,
                                        const struct attention_step_fwd_params *step)
{
    const struct gemm g = merging_gemm(sig, step);
    return attncl__gemm_merges(sig->caps, &g);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_attention_linear_fwd_params *params = call->sig.params;
    struct gemm g = merging_gemm(&call->sig, &params->step);

    REQUIRE(attncl__gemm_merges(l->caps, &g), ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
            "] cannot merge %" PRId64 " parts of %" PRId64 " heads on this device",
            g.m, g.k, g.k, g.n, g.merge.n_parts, g.merge.n_heads);
    if (g.m == 0)
        return ATTNCL_OK;
    const struct attention_split parts = attncl__attention_step_split(call, &params->step);
    TRY(attncl__attention_parts_launch(l, &parts));

    g.a.span = call->scratch;
    g.merge.position = call->in[STEP_POSITION];
    g.b = attncl__linear_rows(call, ATTENTION_LINEAR_WEIGHT);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    g.bias = call->in[ATTENTION_LINEAR_BIAS];
    g.bias_kind = g.bias.storage ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE;
    g.activation = (enum gemm_activation)params->linear.activation;
    g.gate = attncl__linear_rows(call, ATTENTION_LINEAR_GATE);
    g.residual = attncl__linear_rows(call, ATTENTION_LINEAR_RESIDUAL);
    return attncl__gemm(l, &g);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct fused_attention_linear_fwd_params *params = sig->params;
    const double limit = (double)sig->in[STEP_KEYS].dim[0];
    const double element = (double)attncl_dtype_bytes(sig->in[STEP_KEYS].dtype);
    const double rows = (double)sig->in[STEP_Q].dim[0], c = (double)sig->in[STEP_Q].dim[1];
    struct map map;

    map_of(sig, &params->linear, &map);
    attncl__op_linear_fwd.cost(&map.sig, flop_ret, bytes_ret);
    *flop_ret += limit * rows * (4 * c + 5 * (double)params->step.n_heads);
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
