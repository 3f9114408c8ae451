// SPDX-License-Identifier: MIT
//
// One position of an AFT layer without heads, from the layer norm to the output projection, one
// launch:
//
//   x' = x + bias + sum_s partials_in[s]           the residual stream, with split-K partial sums to add
//   q, k, v = LN(x') Wq^T + bq, ...           then a step of AFT (aft_step.c)
//   sum_s partials[s] = y Wo^T
//
// Channels are split into independent blocks; the consumer of the result adds the partial sums.
// Created when a graph is compiled (compile/fusion_rules.c); it has no gradient, as decoding steps have
// none.

#include "op/fused/fused_step.h"

// After the projections those of aft_step_fwd after q, k and v.
enum { BIAS = FUSED_QKV_INPUTS, POSITION, SUMS, KEYS, VALUES, N_INPUTS };

static attncl_status infer(struct op_sig *sig)
{
    const struct fused_aft_step_fwd_params *params = sig->params;
    const struct aft_step_fwd_params step = {params->window};

    return attncl__fused_step_infer_qkv(sig, params->n_blocks, &attncl__op_aft_step_fwd, &step);
}

static bool is_supported(const struct op_sig *sig, int64_t n_blocks)
{
    const int64_t channels = sig->in[FUSED_WQ].dim[0];
    return attncl__fused_step_supported_qkv(
        sig, attncl__fused_step_block_width(sig->caps, channels, n_blocks), 0);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 7 };
    const struct fused_aft_step_fwd_params *params = call->sig.params;
    const struct tensor_desc *table = &call->sig.in[BIAS];
    const int64_t channels = call->sig.in[FUSED_WQ].dim[0];
    const int64_t block_width = attncl__fused_step_block_width(l->caps, channels, params->n_blocks);
    const bool biased = attncl__desc_present(table) && params->window > 0;
    struct kspec spec = kspec_begin("fused/fused_aft_step.cl", "fused_aft_step_fwd");
    struct arg args[FUSED_QKV_ARGS + OWN_ARGS];

    REQUIRE(is_supported(&call->sig, params->n_blocks) &&
                ceil_div(channels, block_width) == params->n_blocks,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %" PRId64 " rows and %" PRId64
            " channels in %d blocks cannot be one launch on this device",
            attncl__fused_step_rows(&call->sig), channels, (int)params->n_blocks);
    attncl__fused_step_qkv_macros(l->caps, call, &spec);
    kspec_int(&spec, "PER_HEAD", 0);
    attncl__fused_step_qkv_args(l->caps, call, params->eps, block_width, args);
    const struct arg own[OWN_ARGS] = {
        arg_mem(call->in[BIAS]),
        arg_i32(biased ? table->dim[0] : INT32_MAX),
        arg_i32(biased ? params->window : 0),
        arg_mem(call->in[POSITION]),
        arg_mem(call->in[SUMS]),
        arg_mem(call->in[KEYS]),
        arg_mem(call->in[VALUES]),
    };
    memcpy(args + FUSED_QKV_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_blocks, 1), args, FUSED_QKV_ARGS + OWN_ARGS);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct fused_aft_step_fwd_params *params = sig->params;
    const double count = (double)attncl__fused_step_rows(sig) * (double)sig->in[FUSED_WQ].dim[0];

    attncl__fused_step_qkv_cost(sig, flop_ret, bytes_ret);
    *flop_ret += count * (40 + 20 * (double)params->window);
    *bytes_ret += 4 * count * (12 + 3 * (double)params->window);
}

const struct op_class attncl__op_fused_aft_step_fwd = {
    .name = "fused_aft_step_fwd",
    .params_bytes = sizeof(struct fused_aft_step_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = FUSED_QKV_OPTIONAL | 1u << BIAS,
    .state = 1u << SUMS | 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

bool attncl__fused_aft_step_prepare(const struct op_sig *sig, const void *step_params, float eps,
                                    void *params)
{
    const struct aft_step_fwd_params *step = step_params;
    struct fused_aft_step_fwd_params *fused = params;

    fused->eps = eps;
    fused->window = step->window;
    fused->n_blocks = attncl__fused_step_blocks(sig->caps, sig->in[FUSED_WQ].dim[0],
                                                attncl__fused_step_qkv_fmas(sig));
    return is_supported(sig, fused->n_blocks);
}
