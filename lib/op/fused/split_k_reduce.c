// SPDX-License-Identifier: MIT
//
// Split-K reduction: sums partial results (fused_step.c).
//
//   y = residual + (bias + sum_s partials[s])        partials [S, m, d], bias [d], residual, y [..., d]

#include "op/fused/fused.h"
#include "op/row_launch.h"

static attncl_status infer(struct op_sig *sig)
{
    REQUIRE(sig->axes->of['.'] == sig->axes->of['M'], ATTNCL_ERR_SHAPE,
            "partials is %s, residual is %s", SHAPE(&sig->in[SPLIT_K_PARTIALS]),
            SHAPE(&sig->in[SPLIT_K_RESIDUAL]));
    return ATTNCL_OK;
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *partials = &call->sig.in[SPLIT_K_PARTIALS];
    const int64_t m = partials->dim[1], d = partials->dim[2];
    const struct group_launch p =
        attncl__group_launch(l->caps, "fused/split_k_reduce.cl", "split_k_reduce_fwd", d);

    TRY(attncl__check_loops(l->caps, p.spec.kernel, partials->dim[0] * (d / (int64_t)p.local + 1)));
    return attncl__launch(l, &p.spec, grid_1d(m, p.local),
                          ARGS(arg_i32(d), arg_i32(partials->dim[0]),
                               arg_i32(attncl__desc_present(&call->sig.in[SPLIT_K_BIAS])),
                               arg_i64(m * d), arg_mem(call->in[SPLIT_K_PARTIALS]),
                               arg_mem(call->in[SPLIT_K_BIAS]), arg_mem(call->in[SPLIT_K_RESIDUAL]),
                               arg_mem(call->out[0])));
}

const struct op_class attncl__op_split_k_reduce_fwd = {
    .name = OP_CLASS(split_k_reduce_fwd),
    .in = OP_IN({"partials", F32, "S M D"}, {"bias", F32 | OPTIONAL, "D"},
                {"residual", F32, "... D"}),
    .out = OP_OUT({"y", F32, "... D"}),
    .int_axes = "SMD",
    .infer = infer,
    .launch = launch,
};
