// SPDX-License-Identifier: MIT
//
// The index of the largest element along the last axis, the first among equals.
//
//   y = least c with x[c] = max(x)        NaN is never the largest; a row of NaN only gives 0
//
// All leading axes fold into rows (cl/norm/argmax.cl).

#include "op/op.h"
#include "op/row_launch.h"

enum { MAX_WIDTH = 1 << 24 }; // indices pass through a reduction of floats

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    REQUIRE(x->rank >= 1, ATTNCL_ERR_SHAPE, "x is a scalar, argmax needs an axis");
    REQUIRE(x->dim[x->rank - 1] >= 1 && x->dim[x->rank - 1] <= MAX_WIDTH, ATTNCL_ERR_SHAPE,
            "the last axis of x has %" PRId64 ", argmax takes 1 to %d", x->dim[x->rank - 1],
            MAX_WIDTH);
    return attncl__desc_make(ATTNCL_I32, x->rank - 1, x->dim, &sig->out[0]);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p =
        attncl__row_launch(l->caps, "norm/argmax.cl", "argmax_rows_fwd", rows.count, rows.width);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]), arg_i64(x->start),
                               arg_i64(rows.stride), arg_i32(rows.width), arg_i64(rows.count),
                               arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_argmax_fwd = {
    .name = OP_CLASS(argmax_fwd, 1, 1),
    .strided = 1u << 0,
    .infer = fwd_infer,
    .launch = fwd_launch,
};
