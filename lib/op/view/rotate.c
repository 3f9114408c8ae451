// SPDX-License-Identifier: MIT
//
// Rotation of pairs of neighbouring channels, all rows alike (cl/view/rotate.cl).
//
//   y_c = table[0][c] x_c + table[1][c] x_(c ^ 1)
//
//   dx_c = table[0][c] dy_c + table[1][c ^ 1] dy_(c ^ 1)
//
// With table rows (cos a, cos a) and (sin a, -sin a) at each pair it turns by -a.

#include "op/op.h"
#include "op/row_launch.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0], *table = &sig->in[1];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    REQUIRE(x->rank >= 1, ATTNCL_ERR_SHAPE, "x is a scalar, a rotation needs an axis");
    const int64_t width = x->dim[x->rank - 1];
    TRY(attncl__check_width("the last axis of x", width));
    REQUIRE(width % 2 == 0, ATTNCL_ERR_SHAPE, "x is %s, its last axis must be even", SHAPE(x));
    TRY(attncl__check_input("the table", table, ATTNCL_F32, 2));
    REQUIRE(table->dim[0] == 2 && table->dim[1] == width, ATTNCL_ERR_SHAPE,
            "the table is %s, expected [2, %" PRId64 "]", SHAPE(table), width);
    return attncl__infer_like_first(sig);
}

static attncl_status launch(struct launcher *l, const struct op_call *call, const char *kernel)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p =
        attncl__row_launch(l->caps, "view/rotate.cl", kernel, rows.count, rows.width);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(x->start), arg_i64(rows.stride), arg_i32(rows.width),
                               arg_i64(rows.count), arg_i32(p.rows_per_group)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "rotate_rows_fwd");
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "rotate_rows_bwd");
}

const struct op_class attncl__op_rotate_bwd = {
    .name = OP_CLASS_MASKS(rotate_bwd, 2, 1),
    .strided = 1u << 0,
    .infer = fwd_infer,
    .launch = bwd_launch,
    .flop_per_element = 3,
};

// A rotation is by a given angle: the table has no gradient.
static const struct grad_rule fwd_grad[] = {
    {.op = OP_rotate_bwd, .in = {REF_DY(0), REF_X(1)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_rotate_fwd = {
    .name = OP_CLASS_MASKS(rotate_fwd, 2, 1),
    .strided = 1u << 0,
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop_per_element = 3,
    .grad = GRAD_RULES(fwd_grad),
};
