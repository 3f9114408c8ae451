// SPDX-License-Identifier: MIT
//
// Rotation of pairs of neighbouring channels, all rows alike (cl/view/rotate.cl).
//
//   y_c = table[0][c] x_c + table[1][c] x_(c ^ 1)
//
//   dx_c = table[0][c] dy_c + table[1][c ^ 1] dy_(c ^ 1)
//
// With table rows (cos a, cos a) and (sin a, -sin a) at each pair it turns by -a.

#include "op/row_launch.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    REQUIRE(sig->axes->of['C'] % 2 == 0, ATTNCL_ERR_SHAPE, "x is %s, its last axis must be even",
            SHAPE(&sig->in[0]));
    return ATTNCL_OK;
}

static attncl_status launch(struct launcher *l, const struct op_call *call, bool back)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p =
        attncl__row_launch(l->caps, "view/rotate.cl", "rotate_rows", rows.count, rows.width);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(x->start), arg_i64(rows.stride), arg_i32(rows.width),
                               arg_i64(rows.count), arg_i32(p.rows_per_group), arg_i32(back)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, false);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, true);
}

const struct op_class attncl__op_rotate_bwd = {
    .name = OP_CLASS(rotate_bwd),
    .in = OP_IN({"x", F32 | STRIDED, "... C"}, {"table", F32, "2 C"}),
    .out = OP_OUT({"y", F32, "... C"}),
    .int_axes = "C",
    .infer = fwd_infer,
    .launch = bwd_launch,
    .flop = "3x",
};

// A rotation is by a given angle: the table has no gradient.
static const struct grad_rule fwd_grad[] = {
    {.op = OP_rotate_bwd, .in = {REF_DY(0), REF_X(1)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_rotate_fwd = {
    .name = OP_CLASS(rotate_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "... C"}, {"table", F32, "2 C"}),
    .out = OP_OUT({"y", F32, "... C"}),
    .int_axes = "C",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "3x",
    .grad = GRAD_RULES(fwd_grad),
};
