// SPDX-License-Identifier: MIT
//
// y = cap tanh(x / cap), elementwise, and its gradient (cl/elementwise/softcap.cl).

#include "op/row_launch.h"

static attncl_status infer(struct op_sig *sig)
{
    const float cap = ((const struct softcap_fwd_params *)sig->params)->cap;
    REQUIRE(cap > 0, ATTNCL_ERR_ARGUMENT, "cap is %g, must be finite and above 0", (double)cap);
    return attncl__check_softcap(cap);
}

static attncl_status launch(struct launcher *l, const struct op_call *call, const char *kernel,
                            struct span dy)
{
    const struct softcap_fwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "elementwise/softcap.cl", kernel, count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(dy), arg_mem(call->out[0]),
                               arg_f32(params->cap), arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "softcap_flat_fwd", (struct span){NULL});
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, "softcap_flat_bwd", call->in[1]);
}

static const struct grad_rule fwd_grad[] = {
    {.op = OP_softcap_bwd, .same_params = true, .in = {REF_Y(0), REF_DY(0)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_softcap_fwd = {
    .name = OP_CLASS(softcap_fwd),
    .in = OP_IN({"x", F32, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .infer = infer,
    .launch = fwd_launch,
    .flop = "3x",
    .grad = GRAD_RULES(fwd_grad),
};

const struct op_class attncl__op_softcap_bwd = {
    .name = OP_CLASS(softcap_bwd),
    .in = OP_IN({"y", F32, "..."}, {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "..."}),
    .infer = infer,
    .launch = bwd_launch,
    .flop = "4x",
};
