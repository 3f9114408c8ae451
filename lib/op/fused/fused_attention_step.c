// SPDX-License-Identifier: MIT
//
// One position of a layer of multi-head attention, from the layer norm to the output projection,
// one launch:
//
//   x' = x + bias + sum_s partials_in[s]           the residual stream, with split-K partial sums to add
//   q, k, v = LN(x') Wq^T + bq, ...           then a step of attention (attention_step.c)
//   sum_s partials[s] = y Wo^T
//
// Heads are split into independent blocks; the consumer of the result adds the partial sums.
// Created when a graph is compiled (compile/fusion_rules.c); it has no gradient, as decoding steps have
// none.

#include "op/fused/fused_step.h"

// After the projections those of attention_step_fwd after q, k and v.
enum { POSITION = FUSED_QKV_INPUTS, KEYS, VALUES, N_INPUTS };

static attncl_status infer(struct op_sig *sig)
{
    const struct fused_attention_step_fwd_params *params = sig->params;

    return attncl__fused_step_infer_qkv(sig, params->n_blocks, &attncl__op_attention_step_fwd,
                                        &params->step);
}

static int64_t head_width(const struct op_sig *sig)
{
    const struct fused_attention_step_fwd_params *params = sig->params;
    return sig->in[FUSED_WQ].dim[0] / params->step.n_heads;
}

// Channels of whole heads.
static int64_t block_width_of(const struct op_sig *sig)
{
    const struct fused_attention_step_fwd_params *params = sig->params;
    return ceil_div(params->step.n_heads, params->n_blocks) * head_width(sig);
}

static bool is_supported(const struct op_sig *sig)
{
    const int64_t head = head_width(sig);
    return head % sig->caps->vector_width == 0 &&
           attncl__fused_step_supported_qkv(sig, block_width_of(sig), head);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 7 };
    const struct fused_attention_step_fwd_params *params = call->sig.params;
    const struct op_sig *sig = &call->sig;
    const int64_t channels = sig->in[FUSED_WQ].dim[0], head = head_width(sig);
    const int64_t block_width = block_width_of(sig);
    struct kspec spec = kspec_begin("fused/fused_attention_step.cl", "fused_attention_step_fwd");
    struct arg args[FUSED_QKV_ARGS + OWN_ARGS];

    REQUIRE(is_supported(sig) && ceil_div(channels, block_width) == params->n_blocks,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %" PRId64 " rows and %d heads of %" PRId64
            " channels in %d blocks cannot be one launch on this device",
            attncl__fused_step_rows(sig), (int)params->step.n_heads, head, (int)params->n_blocks);
    attncl__fused_step_qkv_macros(l->caps, call, &spec);
    attncl__fused_step_qkv_args(l->caps, call, params->eps, block_width, args);
    const struct arg own[OWN_ARGS] = {
        arg_i32(head),
        arg_i32(sig->in[KEYS].dim[0]),
        arg_f32(params->step.scale),
        arg_mem(call->in[POSITION]),
        arg_mem(call->in[KEYS]),
        arg_mem(call->in[VALUES]),
        arg_local((size_t)head * sizeof(float)),
    };
    memcpy(args + FUSED_QKV_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_blocks, 1), args, FUSED_QKV_ARGS + OWN_ARGS);
}

// At the last position: earlier ones cost less, but which it is, only the device knows.
static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double limit = (double)sig->in[KEYS].dim[0];
    const double count = (double)attncl__fused_step_rows(sig) * (double)sig->in[FUSED_WQ].dim[0];

    attncl__fused_step_qkv_cost(sig, flop_ret, bytes_ret);
    *flop_ret += 4 * limit * count;
    *bytes_ret += 8 * limit * count;
}

const struct op_class attncl__op_fused_attention_step_fwd = {
    .name = "fused_attention_step_fwd",
    .params_bytes = sizeof(struct fused_attention_step_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = FUSED_QKV_OPTIONAL,
    .state = 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

// As many blocks as channels would have, where there are so many heads.
bool attncl__fused_attention_step_prepare(const struct op_sig *sig, const void *step_params,
                                          float eps, void *params)
{
    const struct attention_step_fwd_params *step = step_params;
    struct fused_attention_step_fwd_params *fused = params;

    fused->eps = eps;
    fused->step = *step;
    fused->n_blocks = attncl__fused_step_blocks(sig->caps, sig->in[FUSED_WQ].dim[0],
                                                attncl__fused_step_qkv_fmas(sig));
    if (fused->n_blocks > step->n_heads)
        fused->n_blocks = step->n_heads;
    fused->n_blocks = (int32_t)ceil_div(step->n_heads, ceil_div(step->n_heads, fused->n_blocks));
    return is_supported(sig);
}
