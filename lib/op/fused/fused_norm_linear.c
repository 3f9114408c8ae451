// SPDX-License-Identifier: MIT
//
// A linear map of few rows with the layer norm in front of it, one launch instead of two.
// No kernel: it is cl/gemm/gemm_cpu_skinny.cl, on GPUs cl/gemm/gemv.cl, with NORM = 1.
//
//   y = act(LN(x) W^T + b) * gate + residual        x [..., in], norm_weight, norm_bias [in]
//
// Created when a graph is compiled (compile/fusion_rules.c), so that it has no gradient: where one
// is requested, the backward ops read LN(x) too, and the two are not fused.

#include <string.h>

#include "op/matmul/linear.h"

// The same without the norm.
static struct op_sig linear_sig(const struct op_sig *sig)
{
    const struct fused_norm_linear_fwd_params *params = sig->params;
    struct op_sig linear = *sig;

    linear.params = &params->linear;
    linear.n_in = N_LINEAR_INPUTS;
    linear.save_for_backward = false;
    return linear;
}

static bool is_norm_of(const struct tensor_desc *norm, const struct tensor_desc *weight)
{
    return norm->rank == 1 && norm->dim[0] == weight->dim[1];
}

static attncl_status infer(struct op_sig *sig)
{
    static const char *const names[] = {"norm_weight", "norm_bias"};
    const struct fused_norm_linear_fwd_params *params = sig->params;
    struct op_sig linear = linear_sig(sig);

    TRY(attncl__op_linear_fwd.infer(&linear));
    for (int i = NORM_LINEAR_NORM_W; i <= NORM_LINEAR_NORM_B; ++i) {
        const struct tensor_desc *norm = &sig->in[i];
        TRY(attncl__check_input(names[i - NORM_LINEAR_NORM_W], norm, ATTNCL_F32, 1));
        REQUIRE(is_norm_of(norm, &sig->in[LINEAR_WEIGHT]), ATTNCL_ERR_SHAPE,
                "%s is %s, x has %" PRId64 " channels", names[i - NORM_LINEAR_NORM_W], SHAPE(norm),
                sig->in[LINEAR_WEIGHT].dim[1]);
    }
    REQUIRE(params->norm.eps >= 0, ATTNCL_ERR_ARGUMENT, "eps is %g, must be 0 or more",
            (double)params->norm.eps);
    return ATTNCL_OK;
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_norm_linear_fwd_params *params = call->sig.params;
    struct gemm g = attncl__linear_operands(call, &params->linear);

    REQUIRE(attncl__gemm_norms(l->caps, &g), ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
            "] cannot normalise its rows on this device",
            g.m, g.k, g.k, g.n);
    g.norm = (struct gemm_norm){call->in[NORM_LINEAR_NORM_W], call->in[NORM_LINEAR_NORM_B],
                                params->norm.eps};
    return attncl__gemm(l, &g);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct op_sig linear = linear_sig(sig);

    attncl__op_linear_fwd.cost(&linear, flop_ret, bytes_ret);
    *flop_ret += 8 * (double)attncl__desc_count(&sig->in[LINEAR_X]);
    *bytes_ret += 8 * (double)attncl__desc_count(&sig->in[NORM_LINEAR_NORM_W]);
}

const struct op_class attncl__op_fused_norm_linear_fwd = {
    .name = OP_CLASS(fused_norm_linear_fwd, N_NORM_LINEAR_INPUTS, 1),
    .optional = 1u << LINEAR_BIAS | 1u << LINEAR_GATE | 1u << LINEAR_RESIDUAL,
    .strided = 1u << LINEAR_X | 1u << LINEAR_WEIGHT | 1u << LINEAR_GATE | 1u << LINEAR_RESIDUAL,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

bool attncl__norm_linear_supported(const struct op_sig *sig)
{
    const struct gemm g = attncl__linear_gemm(sig);

    return is_norm_of(&sig->in[NORM_LINEAR_NORM_W], &sig->in[LINEAR_WEIGHT]) &&
           attncl__gemm_norms(sig->caps, &g);
}
