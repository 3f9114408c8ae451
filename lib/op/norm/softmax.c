// SPDX-License-Identifier: MIT
//
// softmax over the last axis.
//
//   y = exp(x - max(x)) / sum(exp(x - max(x)))        0 if all of a row is -inf
//
// All leading axes fold into rows (cl/norm/softmax.cl).

#include "op/row_launch.h"

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("norm/softmax.cl", "softmax_rows_fwd"), rows.count,
                                 rows.width, 1, attncl__rows_are_float4_aligned(x->start, &rows)});

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]), arg_i64(x->start),
                               arg_i64(rows.stride), arg_i32(rows.width), arg_i64(rows.count),
                               arg_i32(p.rows_per_group)));
}

static const struct grad_rule fwd_grad[] = {
    {.op = OP_softmax_bwd, .in = {REF_Y(0), REF_DY(0)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_softmax_fwd = {
    .name = OP_CLASS(softmax_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "... C"}),
    .out = OP_OUT({"y", F32, "... C"}),
    .int_axes = "C",
    .launch = fwd_launch,
    .flop = "4x", // subtract, exp, add, divide
    .grad = GRAD_RULES(fwd_grad),
};
