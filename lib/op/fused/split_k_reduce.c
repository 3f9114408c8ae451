// SPDX-License-Identifier: MIT
//
// Split-K reduction: the sum of partial results (fused_step.c):
//
//   y = residual + (bias + sum_s partials[s])        partials [S, m, d], bias [d], residual, y [..., d]

#include "op/fused/split_k_reduce.h"
#include "op/op.h"
#include "op/row_launch.h"

static attncl_status infer(struct op_sig *sig)
{
    const struct tensor_desc *partials = &sig->in[SPLIT_K_PARTIALS], *bias = &sig->in[SPLIT_K_BIAS];
    const struct tensor_desc *residual = &sig->in[SPLIT_K_RESIDUAL];

    TRY(attncl__check_input("partials", partials, ATTNCL_F32, 3));
    TRY(attncl__check_input("residual", residual, ATTNCL_F32, -1));
    REQUIRE(residual->rank >= 1 && residual->dim[residual->rank - 1] == partials->dim[2] &&
                attncl__desc_count(residual) == partials->dim[1] * partials->dim[2],
            ATTNCL_ERR_SHAPE, "partials are %s, residual is %s", SHAPE(partials), SHAPE(residual));
    if (attncl__desc_present(bias)) {
        TRY(attncl__check_input("bias", bias, ATTNCL_F32, 1));
        REQUIRE(bias->dim[0] == partials->dim[2], ATTNCL_ERR_SHAPE, "partials are %s, bias is %s",
                SHAPE(partials), SHAPE(bias));
    }
    TRY(attncl__check_width("rows of partials", partials->dim[2]));
    return attncl__desc_make(ATTNCL_F32, residual->rank, residual->dim, &sig->out[0]);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *partials = &call->sig.in[SPLIT_K_PARTIALS];
    const int64_t m = partials->dim[1], d = partials->dim[2];
    const struct group_launch p =
        attncl__group_launch(l->caps, "fused/split_k_reduce.cl", "split_k_reduce_fwd", d);

    REQUIRE(m <= INT32_MAX && partials->dim[0] <= INT32_MAX, ATTNCL_ERR_UNSUPPORTED,
            "partials are %s, too many", SHAPE(partials));
    TRY(attncl__check_loops(l->caps, p.spec.kernel, partials->dim[0] * (d / (int64_t)p.local + 1)));
    return attncl__launch(l, &p.spec, grid_1d(m, p.local),
                          ARGS(arg_i32(d), arg_i32(partials->dim[0]),
                               arg_i32(attncl__desc_present(&call->sig.in[SPLIT_K_BIAS])),
                               arg_i64(m * d), arg_mem(call->in[SPLIT_K_PARTIALS]),
                               arg_mem(call->in[SPLIT_K_BIAS]), arg_mem(call->in[SPLIT_K_RESIDUAL]),
                               arg_mem(call->out[0])));
}

const struct op_class attncl__op_split_k_reduce_fwd = {
    .name = OP_CLASS_MASKS(split_k_reduce_fwd, N_SPLIT_K_INPUTS, 1),
    .optional = 1u << SPLIT_K_BIAS,
    .infer = infer,
    .launch = launch,
};
