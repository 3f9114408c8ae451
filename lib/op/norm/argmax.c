// SPDX-License-Identifier: MIT
//
// The index of the largest element along the last axis, the first of equal ones.
//
//   y = least c with x[c] = max(x)        NaN is never the largest; an all-NaN row gives 0
//
// All leading axes fold into rows (cl/norm/argmax.cl).

#include "op/row_launch.h"

enum { MAX_WIDTH = 1 << 24 }; // indices pass through a reduction of floats

static attncl_status fwd_infer(struct op_sig *sig)
{
    return attncl__check_axes(sig, "C", 1, MAX_WIDTH);
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
    .name = OP_CLASS(argmax_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "... C"}),
    .out = OP_OUT({"y", I32, "..."}),
    .infer = fwd_infer,
    .launch = fwd_launch,
};
