// SPDX-License-Identifier: MIT
//
// The three linear maps of a few rows in front of attention, one launch instead of three.
// No kernel: it is cl/gemm/gemv.cl with PRODUCTS = 3, and NORM = 1 where there is a layer norm.
//
//   q, k, v = LN(x) W^T + b, each with its own W [out, in] and b     x [..., in], norm_weight, norm_bias [in]
//
// Created when a graph is compiled (compile/fusion_rules.c), so that it has no gradient.

#include <string.h>

#include "op/matmul/linear.h"

enum { N_OUTPUTS = 3 };

static attncl_status infer(struct op_sig *sig)
{
    static const char *const weights[] = {"query_weight", "key_weight", "value_weight"};
    static const char *const vectors[] = {"query_bias", "key_bias", "value_bias", "norm_weight",
                                          "norm_bias"};
    const struct fused_qkv_fwd_params *params = sig->params;
    const struct tensor_desc *x = &sig->in[QKV_X], *weight = &sig->in[QKV_WEIGHT];
    int64_t dim[ATTNCL_MAX_RANK];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    REQUIRE(x->rank >= 1, ATTNCL_ERR_SHAPE, "x has no axis");
    for (int i = 0; i < N_OUTPUTS; ++i) {
        TRY(attncl__check_weights(weights[i], &weight[i], 2));
        REQUIRE(attncl__desc_same_shape(&weight[i], weight) && weight[i].dtype == weight->dtype,
                ATTNCL_ERR_SHAPE, "%s is %s, query_weight %s", weights[i], SHAPE(&weight[i]),
                SHAPE(weight));
    }
    REQUIRE(weight->dim[1] == x->dim[x->rank - 1], ATTNCL_ERR_SHAPE,
            "query_weight takes %" PRId64 " channels, x has %" PRId64, weight->dim[1],
            x->dim[x->rank - 1]);
    for (int i = QKV_BIAS; i <= QKV_NORM_B; ++i) {
        const struct tensor_desc *d = &sig->in[i];
        const int64_t want = weight->dim[i >= QKV_NORM_W];
        if (!attncl__desc_present(d))
            continue;
        TRY(attncl__check_input(vectors[i - QKV_BIAS], d, ATTNCL_F32, 1));
        REQUIRE(d->dim[0] == want, ATTNCL_ERR_SHAPE, "%s is %s, must be [%" PRId64 "]",
                vectors[i - QKV_BIAS], SHAPE(d), want);
    }
    REQUIRE(attncl__desc_present(&sig->in[QKV_NORM_W]) ==
                attncl__desc_present(&sig->in[QKV_NORM_B]),
            ATTNCL_ERR_ARGUMENT, "norm_weight and norm_bias: only one is there");
    REQUIRE(params->norm.eps >= 0, ATTNCL_ERR_ARGUMENT, "eps is %g, must be 0 or more",
            (double)params->norm.eps);
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = weight->dim[0];
    for (int i = 0; i < N_OUTPUTS; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, x->rank, dim, &sig->out[i]));
    return ATTNCL_OK;
}

bool attncl__fused_qkv_supported(const struct op_sig *sig)
{
    const struct tensor_desc *weight = &sig->in[QKV_WEIGHT];
    const struct gemm g = attncl__linear_gemm(sig);

    for (int i = 1; i < N_OUTPUTS; ++i)
        if (!attncl__desc_same_shape(&weight[i], weight) || weight[i].dtype != weight->dtype)
            return false;
    return attncl__gemm_takes_others(sig->caps, &g) &&
           (!attncl__desc_present(&sig->in[QKV_NORM_W]) || attncl__gemm_norms(sig->caps, &g));
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_qkv_fwd_params *params = call->sig.params;
    struct gemm g = attncl__linear_gemm(&call->sig);

    REQUIRE(attncl__fused_qkv_supported(&call->sig), ATTNCL_ERR_UNSUPPORTED,
            "GEMMs of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
            "] cannot be one launch on this device",
            g.m, g.k, g.k, g.n);
    g.a = attncl__linear_rows(call, QKV_X);
    g.b = attncl__linear_rows(call, QKV_WEIGHT);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    g.bias = call->in[QKV_BIAS];
    g.bias_kind = g.bias.storage ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE;
    for (int i = 1; i < N_OUTPUTS; ++i)
        g.other[i - 1] = (struct gemm_other){attncl__linear_rows(call, QKV_WEIGHT + i),
                                             call->in[QKV_BIAS + i], call->out[i]};
    g.norm = (struct gemm_norm){call->in[QKV_NORM_W], call->in[QKV_NORM_B], params->norm.eps};
    return attncl__gemm(l, &g);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double x = (double)attncl__desc_count(&sig->in[QKV_X]);

    *bytes_ret = 4 * x;
    for (int i = 0; i < N_OUTPUTS; ++i)
        *bytes_ret += (double)(attncl__desc_bytes(&sig->in[QKV_WEIGHT + i]) +
                               attncl__desc_bytes(&sig->out[i]));
    *flop_ret = N_OUTPUTS * 2.0 * x * (double)sig->in[QKV_WEIGHT].dim[0];
}

const struct op_class attncl__op_fused_qkv_fwd = {
    .name = OP_CLASS(fused_qkv_fwd, N_QKV_INPUTS, N_OUTPUTS),
    .optional =
        1u << QKV_BIAS | 2u << QKV_BIAS | 4u << QKV_BIAS | 1u << QKV_NORM_W | 1u << QKV_NORM_B,
    .strided = 1u << QKV_X | 1u << QKV_WEIGHT | 2u << QKV_WEIGHT | 4u << QKV_WEIGHT,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};
