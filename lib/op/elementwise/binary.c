// SPDX-License-Identifier: MIT
//
// y = a + b and y = a * b, elementwise, one shape (cl/elementwise/binary.cl).

#include "op/row_launch.h"

static attncl_status launch(struct launcher *l, const struct op_call *call, const char *kernel)
{
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "elementwise/binary.cl", kernel, count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status add_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "binary_add_fwd");
}

static attncl_status mul_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "binary_mul_fwd");
}

static const struct grad_rule add_grad[] = {{.in = {REF_DY(0)}, .out = {REF_DX(0)}},
                                            {.in = {REF_DY(0)}, .out = {REF_DX(1)}}};

const struct op_class attncl__op_add_fwd = {
    .name = OP_CLASS(add_fwd),
    .in = OP_IN({"a", F32, "..."}, {"b", F32, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .launch = add_launch,
    .flop = "x",
    .grad = GRAD_RULES(add_grad),
};

static const struct grad_rule mul_grad[] = {
    {.op = OP_mul_fwd, .in = {REF_DY(0), REF_X(1)}, .out = {REF_DX(0)}},
    {.op = OP_mul_fwd, .in = {REF_DY(0), REF_X(0)}, .out = {REF_DX(1)}}};

const struct op_class attncl__op_mul_fwd = {
    .name = OP_CLASS(mul_fwd),
    .in = OP_IN({"a", F32, "..."}, {"b", F32, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .launch = mul_launch,
    .flop = "x",
    .grad = GRAD_RULES(mul_grad),
};
