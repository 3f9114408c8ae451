// SPDX-License-Identifier: MIT
//
// Rotation of pairs of channels by the angle of a row's position (cl/view/rotate.cl).
//
//   y_a = cos x_a - sin x_b,   y_b = cos x_b + sin x_a
//
// Channels a, b are i and i + F, or 2 i and 2 i + 1, i < F; channels from 2 F on stay.  Table row p has the cosines and the
// sines of position p.  One row: for all.  Else axis 0 of x is time, and row t has position t or, with `position`, the
// one of its place [T or 1, B or 1].  The gradient turns back.

#include <inttypes.h>

#include "op/row_launch.h"

static attncl_status infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0], *position = &sig->in[2];
    const int64_t *of = sig->axes->of;
    const bool given = attncl__desc_present(position), empty = attncl__desc_count(x) == 0;

    TRY(attncl__check_axes(sig, "CPTB", 1, INT32_MAX));
    REQUIRE(of['F'] <= of['C'] / 2, ATTNCL_ERR_SHAPE,
            "table is %s, of %" PRId64 " pairs, x is %s, of %" PRId64 " channels",
            SHAPE(&sig->in[1]), of['F'], SHAPE(x), of['C']);
    REQUIRE(empty || !given ||
                (x->rank >= 3 && (position->dim[0] == 1 || position->dim[0] == x->dim[0]) &&
                 (position->dim[1] == 1 || position->dim[1] == x->dim[1])),
            ATTNCL_ERR_SHAPE,
            "position is %s, x is %s: expected [T or 1, B or 1] of x [T, B, ..., C]",
            SHAPE(position), SHAPE(x));
    REQUIRE(empty || given || of['P'] == 1 || (x->rank >= 2 && x->dim[0] <= of['P']),
            ATTNCL_ERR_SHAPE, "x is %s, T may be %" PRId64 " at most, the rows of the table",
            SHAPE(x), of['P']);
    return ATTNCL_OK;
}

static attncl_status launch(struct launcher *l, const struct op_call *call, bool back)
{
    const struct rotate_fwd_params *params = call->sig.params;
    const struct tensor_desc *x = &call->sig.in[0], *table = &call->sig.in[1];
    const struct tensor_desc *position = &call->sig.in[2];
    const struct rows rows = attncl__rows(x);
    const bool given = attncl__desc_present(position), timed = given || table->dim[0] > 1;
    const int64_t n_time = timed ? x->dim[0] : 1, n_batch = given ? x->dim[1] : 1;
    const int64_t per_time = n_time ? rows.count / n_time : 0;
    const struct row_launch p =
        attncl__row_launch(l->caps, "view/rotate.cl", "rotate_rows", rows.count, rows.width);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->out[0]), arg_i64(x->start), arg_i64(rows.stride),
                               arg_i32(rows.width), arg_i64(rows.count), arg_i32(p.rows_per_group),
                               arg_i32(table->dim[2]), arg_i32(table->dim[0]), arg_i64(per_time),
                               arg_i64(n_batch ? per_time / n_batch : 0), arg_i32(given),
                               arg_i32(given && position->dim[0] > 1 ? position->dim[1] : 0),
                               arg_i32(given && position->dim[1] > 1), arg_i32(params->half),
                               arg_f32(back ? -1.0f : 1.0f)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, false);
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, true);
}

#define ROTATE_INPUTS                                                                              \
    OP_IN({"x", F32 | STRIDED, "... C"}, {"table", F32, "P 2 F"},                                  \
          {"position", I32 | OPTIONAL, "T B"})

const struct op_class attncl__op_rotate_bwd = {
    .name = OP_CLASS(rotate_bwd),
    .in = ROTATE_INPUTS,
    .out = OP_OUT({"y", F32, "... C"}),
    .infer = infer,
    .launch = bwd_launch,
    .flop = "3x",
};

// A rotation is by given angles: the table has no gradient.
static const struct grad_rule fwd_grad[] = {{.op = OP_rotate_bwd,
                                             .same_params = true,
                                             .in = {REF_DY(0), REF_X(1), REF_X(2)},
                                             .out = {REF_DX(0)}}};

const struct op_class attncl__op_rotate_fwd = {
    .name = OP_CLASS(rotate_fwd),
    .in = ROTATE_INPUTS,
    .out = OP_OUT({"y", F32, "... C"}),
    .infer = infer,
    .launch = fwd_launch,
    .flop = "3x",
    .grad = GRAD_RULES(fwd_grad),
};
