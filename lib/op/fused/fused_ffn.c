// SPDX-License-Identifier: MIT
//
// A feed-forward network of few rows with the layer norm in front of it, one launch:
//
//   x' = x + bias + sum_s partials_in[s]           the residual stream, with split-K partial sums to add
//   sum_s partials[s] = act(LN(x') W1^T + b1) W2^T
//
// Hidden units are split into independent blocks; the consumer of the result adds the partial sums.
// Created when a graph is compiled (compile/fusion_rules.c), after another op that leaves split-K partial
// sums; it has no gradient.

#include "gemm/gemm.h"
#include "gemm/skinny_gemm.h"
#include "op/fused/fused_step.h"
#include "op/fused/split_k_reduce.h"
#include "op/matmul/linear.h"

enum { W1 = FUSED_INPUTS, B1, W2, N_INPUTS };

static attncl_status infer(struct op_sig *sig)
{
    const struct fused_ffn_fwd_params *params = sig->params;
    const struct tensor_desc *w1 = &sig->in[W1], *b1 = &sig->in[B1], *w2 = &sig->in[W2];

    TRY(attncl__check_input("w1", w1, ATTNCL_F32, 2));
    TRY(attncl__check_input("w2", w2, ATTNCL_F32, 2));
    TRY(attncl__fused_step_infer(sig, params->n_blocks, w2->dim[0]));
    REQUIRE(w1->dim[1] == attncl__fused_step_width(sig), ATTNCL_ERR_SHAPE,
            "w1 is %s, x has %" PRId64 " channels", SHAPE(w1), attncl__fused_step_width(sig));
    REQUIRE(w2->dim[1] == w1->dim[0], ATTNCL_ERR_SHAPE, "w2 is %s, w1 is %s", SHAPE(w2), SHAPE(w1));
    if (attncl__desc_present(b1)) {
        TRY(attncl__check_input("b1", b1, ATTNCL_F32, 1));
        REQUIRE(b1->dim[0] == w1->dim[0], ATTNCL_ERR_SHAPE, "b1 is %s, w1 is %s", SHAPE(b1),
                SHAPE(w1));
    }
    REQUIRE(params->activation >= GEMM_ACT_NONE && params->activation <= GEMM_ACT_SILU,
            ATTNCL_ERR_ARGUMENT, "there is no activation %d", (int)params->activation);
    return ATTNCL_OK;
}

static bool is_supported(const struct op_sig *sig, int64_t n_blocks)
{
    const struct tensor_desc *w1 = &sig->in[W1], *w2 = &sig->in[W2];
    const int64_t block_width = attncl__fused_step_block_width(sig->caps, w1->dim[0], n_blocks);

    return attncl__fused_step_supported(sig, (int64_t[]){w1->dim[0], w1->dim[1], w2->dim[0]}, 3,
                                        attncl__fused_step_rows(sig) * block_width);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 12 };
    const struct fused_ffn_fwd_params *params = call->sig.params;
    const int64_t m = attncl__fused_step_rows(&call->sig), d = attncl__fused_step_width(&call->sig);
    const int64_t f = call->sig.in[W1].dim[0], d_out = call->sig.in[W2].dim[0];
    const int64_t block_width = attncl__fused_step_block_width(l->caps, f, params->n_blocks);
    struct kspec spec = kspec_begin("fused/fused_ffn.cl", "fused_ffn_fwd");
    struct arg args[FUSED_ARGS + OWN_ARGS];

    REQUIRE(is_supported(&call->sig, params->n_blocks) &&
                ceil_div(f, block_width) == params->n_blocks,
            ATTNCL_ERR_UNSUPPORTED,
            "a network of %" PRId64 " rows, %" PRId64 " channels and %" PRId64
            " hidden units in %d blocks cannot be one launch on this device",
            m, d, f, (int)params->n_blocks);
    attncl__skinny_gemm_macros(l->caps, m, &spec);
    kspec_int(&spec, "HAS_K_TAIL", 0);
    kspec_int(&spec, "ACT", params->activation);
    attncl__fused_step_args(call, params->eps, args);
    const struct arg own[OWN_ARGS] = {
        arg_i32(f),
        arg_i32(block_width),
        arg_i32(d_out),
        arg_i32(attncl__skinny_gemm_prefetch_rows(l->caps, m, d)),
        arg_i32(attncl__skinny_gemm_prefetch_rows(l->caps, m, block_width)),
        arg_mem(call->in[W1]),
        arg_i32(attncl__desc_present(&call->sig.in[B1])),
        arg_mem(call->in[B1]),
        arg_mem(call->in[W2]),
        arg_mem(call->out[FUSED_PARTIAL_SUMS]),
        arg_local((size_t)(m * d) * sizeof(float)),
        arg_local((size_t)(m * block_width) * sizeof(float)),
    };
    memcpy(args + FUSED_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_blocks, 1), args, FUSED_ARGS + OWN_ARGS);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double weights =
        (double)(attncl__desc_count(&sig->in[W1]) + attncl__desc_count(&sig->in[W2]));

    *flop_ret =
        (double)attncl__fused_step_rows(sig) * (2 * weights + 8 * (double)sig->in[W1].dim[1]);
    *bytes_ret = 4 * (weights + 2 * (double)attncl__desc_count(&sig->in[FUSED_X]) +
                      (double)attncl__desc_count(&sig->out[FUSED_PARTIAL_SUMS]));
}

const struct op_class attncl__op_fused_ffn_fwd = {
    .name = "fused_ffn_fwd",
    .params_bytes = sizeof(struct fused_ffn_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = 1u << FUSED_PARTIALS | 1u << FUSED_PARTIALS_BIAS | 1u << B1,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

bool attncl__fused_ffn_prepare(const struct op_sig *sig, const void *step_params, float eps,
                               void *params)
{
    const struct fused_norm_linear_fwd_params *inner = step_params;
    const struct tensor_desc *w1 = &sig->in[W1], *w2 = &sig->in[W2];
    struct fused_ffn_fwd_params *fused = params;

    fused->eps = eps;
    fused->activation = inner->linear.activation;
    fused->n_blocks = attncl__fused_step_blocks(sig->caps, w1->dim[0],
                                                attncl__fused_step_rows(sig) * w1->dim[0] *
                                                    (w1->dim[1] + w2->dim[0]));
    return is_supported(sig, fused->n_blocks);
}
