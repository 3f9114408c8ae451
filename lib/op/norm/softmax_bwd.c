// SPDX-License-Identifier: MIT
//
// The gradient of softmax over the last axis, from its result.
//
//   dx = y (dy - sum(y dy))
//
// With lengths, those of masked_softmax, dx is 0 in the columns from a row's length on: the score
// they had was a constant.  Kernel: cl/norm/softmax_bwd.cl.

#include "op/row_launch.h"

static attncl_status bwd_infer(struct op_sig *sig)
{
    if (!attncl__desc_present(&sig->in[2]))
        return ATTNCL_OK;
    TRY(attncl__check_shape(sig, 0, "B Q K"));
    return attncl__check_shape(sig, 2, "B Q?");
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *lens = &call->sig.in[2];
    const int64_t rows_per_length = !attncl__desc_present(lens) ? 0
                                    : lens->rank == 1           ? call->sig.in[0].dim[1]
                                                                : 1;
    const struct rows rows = attncl__rows(&call->sig.in[0]);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("norm/softmax_bwd.cl", "softmax_bwd_rows"), rows.count,
                                 rows.width, 2, attncl__rows_are_float4_aligned(0, &rows)});

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->out[0]), arg_i32(rows.width), arg_i64(rows.count),
                               arg_i32(p.rows_per_group), arg_i64(rows_per_length)));
}

const struct op_class attncl__op_softmax_bwd = {
    .name = OP_CLASS(softmax_bwd),
    .in = OP_IN({"y", F32, "... C"}, {"dy", F32, "... C"}, {"valid_lens", I32 | OPTIONAL, NULL}),
    .out = OP_OUT({"dx", F32, "... C"}),
    .int_axes = "C",
    .infer = bwd_infer,
    .launch = bwd_launch,
    .flop = "4x",
};
