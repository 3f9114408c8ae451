// SPDX-License-Identifier: MIT
//
// A linear map of few rows and its prologue, in one launch:
//
//   y   = act(z W^T + b) * gate + residual      z = x, its layer or RMS norm, or the merged parts x of
//                                               an attention step; norms may be of x + (bias + sum of partials)
//   y_i = z W_i^T + b_i                         other products of z; then y has no activation, gate or residual
//
// No kernel: uses cl/gemm/gemm_cpu_skinny.cl and gemm_cpu_quantised.cl, on GPUs gemv_dot.cl and gemv_blocks.cl, with NORM, MERGE
// or PRODUCTS.
//
// Only fusion creates it (compile/fusion_prologue.c, fusion_products.c), never where a gradient is
// requested: the backward ops would read z too.

#include "op/fused/fused.h"

#include <string.h>

static bool has_input(const struct op_sig *sig, int input)
{
    return attncl__desc_present(&sig->in[input]);
}

static int count_products(const struct op_sig *sig)
{
    return has_input(sig, FUSED_LINEAR_MORE) ? 1 + GEMM_MAX_OTHERS : 1;
}

static attncl_status infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[LINEAR_X];
    const int rank = has_input(sig, FUSED_LINEAR_POSITION) ? 2 : x->rank;
    int64_t dim[ATTNCL_MAX_RANK];

    assert(rank > 0);
    memcpy(dim, x->dim, (size_t)rank * sizeof dim[0]);
    for (int i = 0; i < count_products(sig); ++i) {
        dim[rank - 1] = sig->in[i ? FUSED_LINEAR_MORE + 2 * (i - 1) : LINEAR_WEIGHT].dim[0];
        TRY(attncl__desc_make(ATTNCL_F32, rank, dim, &sig->out[i]));
    }
    return ATTNCL_OK;
}

// With unmerged parts, the GEMM has as many rows as x has after merging.
static struct gemm merge_rows(const struct op_sig *sig, struct gemm g)
{
    const struct tensor_desc *x = &sig->in[LINEAR_X];

    if (has_input(sig, FUSED_LINEAR_POSITION)) {
        g.m = x->dim[0];
        g.merge.n_heads = x->dim[1];
        g.merge.n_parts = x->dim[2];
    }
    return g;
}

bool attncl__fused_linear_supported(const struct op_sig *sig)
{
    const struct gemm g = merge_rows(sig, attncl__linear_gemm(sig));
    const struct tensor_desc *norm = &sig->in[FUSED_LINEAR_NORM_W],
                             *weight = &sig->in[LINEAR_WEIGHT];

    for (int i = 1; i < count_products(sig); ++i) {
        const struct tensor_desc *other = &sig->in[FUSED_LINEAR_MORE + 2 * (i - 1)];
        if (!attncl__desc_same_shape(other, &sig->in[FUSED_LINEAR_MORE]) ||
            other->dim[0] > weight->dim[0] || other->dim[1] != weight->dim[1] ||
            other->dtype != weight->dtype)
            return false;
    }
    return (!has_input(sig, FUSED_LINEAR_NORM_W) ||
            (norm->rank == 1 && attncl__gemm_can_norm(sig->caps, &g))) &&
           (!has_input(sig, FUSED_LINEAR_PARTIALS) ||
            (has_input(sig, FUSED_LINEAR_NORM_W) &&
             attncl__gemm_can_add_partials(sig->caps, &g))) &&
           (!has_input(sig, FUSED_LINEAR_POSITION) || attncl__gemm_can_merge(sig->caps, &g)) &&
           (!has_input(sig, FUSED_LINEAR_MORE) || attncl__gemm_can_take_others(sig->caps, &g));
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_linear_fwd_params *params = call->sig.params;
    struct gemm g = merge_rows(&call->sig, attncl__linear_operands(call, &params->linear));

    REQUIRE(attncl__fused_linear_supported(&call->sig), ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
            "] cannot be fused on this device",
            g.m, g.k, g.k, g.n);
    const struct tensor_desc *partials = &call->sig.in[FUSED_LINEAR_PARTIALS];
    g.norm = (struct gemm_norm){call->in[FUSED_LINEAR_NORM_W],
                                call->in[FUSED_LINEAR_NORM_B],
                                params->eps,
                                call->in[FUSED_LINEAR_PARTIALS],
                                call->in[FUSED_LINEAR_PARTIALS_BIAS],
                                attncl__desc_present(partials) ? partials->dim[0] : 0};
    g.merge.position = call->in[FUSED_LINEAR_POSITION];
    g.merge.limit = params->limit;
    g.merge.own_keys = params->own_keys;
    if (count_products(&call->sig) > 1)
        g.n_other = call->sig.in[FUSED_LINEAR_MORE].dim[0];
    for (int i = 1; i < count_products(&call->sig); ++i) {
        const int weight = FUSED_LINEAR_MORE + 2 * (i - 1);
        g.other[i - 1] = (struct gemm_other){attncl__linear_rows(call, weight),
                                             call->in[weight + 1], call->out[i]};
    }
    return attncl__gemm(l, &g);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    (void)bytes_ret; // inputs and outputs only
    *flop_ret = 0;
    for (int i = 0; i < count_products(sig); ++i)
        *flop_ret +=
            2.0 * (double)attncl__desc_count(&sig->out[i]) * (double)sig->in[LINEAR_WEIGHT].dim[1];
    if (has_input(sig, FUSED_LINEAR_NORM_W))
        *flop_ret += 8 * (double)attncl__desc_count(&sig->in[LINEAR_X]);
}

#define WEIGHT "weight", STORED | OR_QUANTISED | STRIDED | OPTIONAL, NULL
#define BIAS   "bias", F32 | OPTIONAL, NULL
#define Y      "y", F32, NULL
const struct op_class attncl__op_fused_linear_fwd = {
    .name = OP_CLASS(fused_linear_fwd),
    .in = OP_IN({"x", F32 | STRIDED, NULL}, {"weight", STORED | OR_QUANTISED | STRIDED, NULL},
                {BIAS}, {"gate", F32 | STRIDED | OPTIONAL, NULL},
                {"residual", F32 | STRIDED | OPTIONAL, NULL}, {"norm_weight", F32 | OPTIONAL, NULL},
                {"norm_bias", F32 | OPTIONAL, NULL}, {"partials", F32 | OPTIONAL, NULL},
                {"partials_bias", F32 | OPTIONAL, NULL}, {"position", I32 | OPTIONAL, NULL},
                {WEIGHT}, {BIAS}, {WEIGHT}, {BIAS}),
    .out = OP_OUT({Y}, {Y}, {Y}),
    .infer = infer,
    .launch = launch,
    .cost = cost,
};
