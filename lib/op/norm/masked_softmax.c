// SPDX-License-Identifier: MIT
//
// softmax over the last axis of x [B, Q, K] with optional lengths, and the gradient of softmax and
// masked softmax.
//
//   s_k = x_k for k < length, else -1e6;  y = softmax(s);  dx = y (dy - sum(y dy))
//
// The finite score is part of the definition (d2l 11.3): length 0 gives 1/K everywhere, and scores
// below -1e6 lose to masked columns.  dx is 0 in masked columns, where s is constant.
// Kernels: cl/norm/masked_softmax.cl, softmax_bwd.cl.

#include "op/row_launch.h"

// Rows of input 0 per length of input `lens`; 0 without lengths.
static int64_t rows_per_length(const struct op_sig *sig, int lens)
{
    if (!attncl__desc_present(&sig->in[lens]))
        return 0;
    return sig->in[lens].rank == 1 ? sig->in[0].dim[1] : 1;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("norm/masked_softmax.cl", "masked_softmax_rows_fwd"),
                                 rows.count, rows.width, 1,
                                 attncl__rows_are_float4_aligned(x->start, &rows)});

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(x->start), arg_i64(rows.stride), arg_i32(rows.width),
                               arg_i64(rows.count), arg_i32(p.rows_per_group),
                               arg_i64(rows_per_length(&call->sig, 1))));
}

static const struct grad_rule fwd_grad[] = {
    {.op = OP_softmax_bwd, .in = {REF_Y(0), REF_DY(0), REF_X(1)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_masked_softmax_fwd = {
    .name = OP_CLASS(masked_softmax_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "B Q K"}, {"valid_lens", I32 | OPTIONAL, "B Q?"}),
    .out = OP_OUT({"y", F32, "B Q K"}),
    .int_axes = "K",
    .launch = fwd_launch,
    .flop = "4x", // subtract, exp, add, divide
    .grad = GRAD_RULES(fwd_grad),
};

static attncl_status bwd_infer(struct op_sig *sig)
{
    if (!attncl__desc_present(&sig->in[2]))
        return ATTNCL_OK;
    TRY(attncl__check_shape(sig, 0, "B Q K"));
    return attncl__check_shape(sig, 2, "B Q?");
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct rows rows = attncl__rows(&call->sig.in[0]);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("norm/softmax_bwd.cl", "softmax_bwd_rows"), rows.count,
                                 rows.width, 2, attncl__rows_are_float4_aligned(0, &rows)});

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->out[0]), arg_i32(rows.width), arg_i64(rows.count),
                               arg_i32(p.rows_per_group), arg_i64(rows_per_length(&call->sig, 2))));
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
