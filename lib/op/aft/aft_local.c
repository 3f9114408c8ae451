// SPDX-License-Identifier: MIT
//
// Attention-free mixing with a local position bias.
//
//   y_i = sigmoid(q_i) sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j), per batch
//   entry and channel
//
// w is the table where |i - j| < window, else 0.  Rows whose bias is 0 enter as sums of whole
// blocks, so that the cost is O(T window) per channel; a mask makes it O(T^2).
//
// lib/op/aft/aft_mix.c launches it.
//
// The parameter path is the CPU kernel's PATH: 0 but in tests.

#include "op/aft/aft_tiling.h"

static attncl_status check_bias(const struct op_sig *sig)
{
    const struct tensor_desc *w = &sig->in[AFT_IN_BIAS];

    if (!attncl__desc_present(w))
        return ATTNCL_OK;
    REQUIRE(w->dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE, "pos_bias is %s, expected F32",
            attncl_dtype_name(w->dtype));
    REQUIRE(w->rank == 2 && w->dim[0] == w->dim[1], ATTNCL_ERR_SHAPE,
            "pos_bias is %s, expected [n, n]", SHAPE(w));
    REQUIRE(sig->in[AFT_IN_Q].dim[0] <= w->dim[0], ATTNCL_ERR_SHAPE,
            "T = %" PRId64 " exceeds the n = %" PRId64 " of pos_bias", sig->in[AFT_IN_Q].dim[0],
            w->dim[0]);
    REQUIRE(w->dim[0] <= AFT_MAX_LENGTH, ATTNCL_ERR_SHAPE,
            "pos_bias has n = %" PRId64 ", at most %d", w->dim[0], AFT_MAX_LENGTH);
    return ATTNCL_OK;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *k = &sig->in[AFT_IN_K];
    const struct aft_local_fwd_params *p = sig->params;

    REQUIRE(p->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %d, at least 0", p->window);
    REQUIRE(p->path >= 0 && p->path <= 2, ATTNCL_ERR_ARGUMENT, "path is %d, expected 0, 1 or 2",
            p->path);
    TRY(attncl__aft_check(sig, p->causal));
    REQUIRE(attncl__desc_same_shape(k, q), ATTNCL_ERR_SHAPE, "k is %s, q is %s", SHAPE(k),
            SHAPE(q));
    TRY(check_bias(sig));
    return attncl__aft_infer(sig);
}

struct aft_variant attncl__aft_local_variant(const struct op_sig *sig)
{
    const struct aft_local_fwd_params *p = sig->params;
    return (struct aft_variant){
        .window = p->window,
        .bias_row = sig->in[AFT_IN_BIAS].dim[0],
        .causal = p->causal != 0,
        .path = p->path,
    };
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_local_variant(sig);
    return attncl__aft_scratch(sig, &variant, bytes_ret);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct aft_variant variant = attncl__aft_local_variant(&call->sig);
    return attncl__aft_launch(l, call, &variant);
}

static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_variant variant = attncl__aft_local_variant(sig);
    attncl__aft_cost(sig, &variant, flop_ret, bytes_ret);
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = &attncl__op_aft_local_bwd,
        .in = {REF_X(AFT_IN_Q), REF_X(AFT_IN_K), REF_X(AFT_IN_V), REF_X(AFT_IN_BIAS),
               REF_X(AFT_IN_MASK), REF_Y(AFT_OUT_Y), REF_Y(AFT_OUT_LOG), REF_DY(AFT_OUT_Y)},
        .out = {REF_DX(AFT_IN_Q), REF_DX(AFT_IN_K), REF_DX(AFT_IN_V), REF_DX(AFT_IN_BIAS)},
    },
};

const struct op_class attncl__op_aft_local_fwd = {
    .name = "aft_local_fwd",
    .params_bytes = sizeof(struct aft_local_fwd_params),
    .n_in = 5,
    .n_out = 2,
    .optional = 1u << AFT_IN_BIAS | 1u << AFT_IN_MASK,
    .strided = 1u << AFT_IN_Q | 1u << AFT_IN_K | 1u << AFT_IN_V,
    .saved_for_backward = 1u << AFT_OUT_LOG,
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .cost = fwd_cost,
    .grad = fwd_grad,
    .n_grad = sizeof fwd_grad / sizeof fwd_grad[0],
};
