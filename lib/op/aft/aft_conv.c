// SPDX-License-Identifier: MIT
//
// Attention-free mixing of H heads, AFT-conv (Zhai et al. 2021, arXiv 2105.14103, eq. 6).
//
//   y_i = sigmoid(q_i) sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j), per batch
//   entry and head
//
// No kernel: the kernels are those of AFT-local (lib/op/aft/aft_mix.c).
//
// Channel c belongs to head c / (C / H), which has one key a row.  w depends on the distance: it is
// w[head, j - i + (s - 1) / 2] where that exists, else 0.  The paper subtracts 1 from e^w in the
// window and adds the sum of all; here, as in AFT-local, windows are weighed apart from what is
// outside (lib/op/aft/aft_mix.c), each head as AFT-local of its channels.

#include "op/aft/aft_tiling.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct aft_conv_fwd_params *p = sig->params;
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *k = &sig->in[AFT_IN_K];

    REQUIRE(p->path >= 0 && p->path <= 2, ATTNCL_ERR_ARGUMENT, "path is %d, expected 0, 1 or 2",
            p->path);
    TRY(attncl__aft_check(sig, p->causal));
    REQUIRE(k->rank == 3 && k->dim[0] == q->dim[0] && k->dim[1] == q->dim[1], ATTNCL_ERR_SHAPE,
            "k is %s, q is %s, expected [T, B, H] and [T, B, C]", SHAPE(k), SHAPE(q));
    TRY(attncl__aft_check_filter(&sig->in[AFT_IN_BIAS], q->dim[2], k->dim[2]));
    return attncl__aft_infer(sig);
}

struct aft_variant attncl__aft_conv_variant(const struct op_sig *sig)
{
    const struct aft_conv_fwd_params *p = sig->params;
    struct aft_variant variant =
        attncl__aft_filter_variant(&sig->in[AFT_IN_BIAS], sig->in[AFT_IN_K].dim[2]);

    variant.causal = p->causal != 0;
    variant.path = p->path;
    return variant;
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_conv_variant(sig);
    return attncl__aft_scratch(sig, &variant, bytes_ret);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct aft_variant variant = attncl__aft_conv_variant(&call->sig);
    return attncl__aft_launch(l, call, &variant);
}

static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_conv_variant(sig);
    attncl__aft_cost(sig, &variant, flop_ret, bytes_ret);
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = &attncl__op_aft_conv_bwd,
        .in = {REF_X(AFT_IN_Q), REF_X(AFT_IN_K), REF_X(AFT_IN_V), REF_X(AFT_IN_BIAS),
               REF_X(AFT_IN_MASK), REF_Y(AFT_OUT_Y), REF_Y(AFT_OUT_LOG), REF_DY(AFT_OUT_Y)},
        .out = {REF_DX(AFT_IN_Q), REF_DX(AFT_IN_K), REF_DX(AFT_IN_V), REF_DX(AFT_IN_BIAS)},
    },
};

const struct op_class attncl__op_aft_conv_fwd = {
    .name = "aft_conv_fwd",
    .params_bytes = sizeof(struct aft_conv_fwd_params),
    .n_in = 5,
    .n_out = 2,
    .optional = 1u << AFT_IN_MASK,
    .strided = 1u << AFT_IN_Q | 1u << AFT_IN_K | 1u << AFT_IN_V,
    .saved_for_backward = 1u << AFT_OUT_LOG,
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .cost = fwd_cost,
    .grad = fwd_grad,
    .n_grad = sizeof fwd_grad / sizeof fwd_grad[0],
};
