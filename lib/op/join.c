// SPDX-License-Identifier: MIT
//
// A sum that waits in parts (ffn_parts.c, aft_parts.c):
//
//   y = residual + (bias + sum_s parts[s])        parts [S, m, d], bias [d], residual, y [..., d]

#include "op/join.h"
#include "op/op.h"

static attncl_status infer(struct op_sig *sig)
{
    const struct tensor_desc *parts = &sig->in[JOIN_PARTS], *bias = &sig->in[JOIN_BIAS];
    const struct tensor_desc *residual = &sig->in[JOIN_RESIDUAL];

    TRY(attncl__check_input("parts", parts, ATTNCL_F32, 3));
    TRY(attncl__check_input("residual", residual, ATTNCL_F32, -1));
    REQUIRE(residual->rank >= 1 && residual->dim[residual->rank - 1] == parts->dim[2] &&
                attncl__desc_count(residual) == parts->dim[1] * parts->dim[2],
            ATTNCL_ERR_SHAPE, "parts are %s, residual is %s", SHAPE(parts), SHAPE(residual));
    if (attncl__desc_present(bias)) {
        TRY(attncl__check_input("bias", bias, ATTNCL_F32, 1));
        REQUIRE(bias->dim[0] == parts->dim[2], ATTNCL_ERR_SHAPE, "parts are %s, bias is %s",
                SHAPE(parts), SHAPE(bias));
    }
    TRY(attncl__check_width("rows of parts", parts->dim[2]));
    return attncl__desc_make(ATTNCL_F32, residual->rank, residual->dim, &sig->out[0]);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *parts = &call->sig.in[JOIN_PARTS];
    const int64_t m = parts->dim[1], d = parts->dim[2];
    const bool cpu = l->caps->form == FORM_CPU;
    const size_t local = cpu ? 1 : attncl__group_for_row(l->caps, d);
    struct kspec spec = kspec_begin("op/join.cl", "join_fwd");

    kspec_form(&spec, cpu ? l->caps->vector_width : 1, local);
    REQUIRE(m <= INT32_MAX && parts->dim[0] <= INT32_MAX, ATTNCL_ERR_UNSUPPORTED,
            "parts are %s, too many", SHAPE(parts));
    TRY(attncl__check_loops(l->caps, spec.kernel, parts->dim[0] * (d / (int64_t)local + 1)));
    return attncl__launch(l, &spec, grid_1d(m, local),
                          ARGS(arg_i32(d), arg_i32(parts->dim[0]),
                               arg_i32(attncl__desc_present(&call->sig.in[JOIN_BIAS])),
                               arg_i64(m * d), arg_mem(call->in[JOIN_PARTS]),
                               arg_mem(call->in[JOIN_BIAS]), arg_mem(call->in[JOIN_RESIDUAL]),
                               arg_mem(call->out[0])));
}

const struct op_class attncl__op_join_fwd = {
    .name = "join_fwd",
    .params_bytes = sizeof(struct join_fwd_params),
    .n_in = N_JOIN_INPUTS,
    .n_out = 1,
    .optional = 1u << JOIN_BIAS,
    .infer = infer,
    .launch = launch,
};
