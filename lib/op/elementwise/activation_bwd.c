// SPDX-License-Identifier: MIT
//
// The gradients of activations, alone and in the epilogue of a linear map
// (cl/elementwise/activation_bwd.cl).
//
//   activation   y = f(x)            dx = dy f'(x)
//   epilogue     y = f(p) gate + r   dp = dy gate f'(p)      dgate = dy f(p)
//
// ReLU's slope at y equals that at x, so its argument may be y.

#include "op/row_launch.h"

static attncl_status launch(struct launcher *l, const struct op_call *call, int32_t kind,
                            struct span gate)
{
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    struct elementwise_launch p = attncl__elementwise_launch(
        l->caps, "elementwise/activation_bwd.cl", "activation_bwd_flat", count);

    kspec_int(&p.spec, "KIND", kind);
    kspec_int(&p.spec, "GATE", gate.storage != NULL);
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(gate),
                               arg_mem(call->out[0]), arg_mem(call->out[1]), arg_i64(count),
                               arg_i32(p.per_group)));
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct activation_bwd_params *params = call->sig.params;
    return launch(l, call, params->kind, (struct span){NULL});
}

static attncl_status epilogue_launch(struct launcher *l, const struct op_call *call)
{
    const struct linear_bwd_epilogue_params *params = call->sig.params;
    return launch(l, call, params->activation, call->in[2]);
}

const struct op_class attncl__op_activation_bwd = {
    .name = OP_CLASS(activation_bwd),
    .in = OP_IN({"argument", F32, "..."}, {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "..."}),
    .infer = attncl__check_activation,
    .launch = bwd_launch,
    .flop = "2x",
};

const struct op_class attncl__op_linear_bwd_epilogue = {
    .name = OP_CLASS(linear_bwd_epilogue),
    .in = OP_IN({"argument", F32, "..."}, {"dy", F32, "..."}, {"gate", F32 | OPTIONAL, "..."}),
    .out = OP_OUT({"dp", F32, "..."}, {"dgate", F32, "=gate"}),
    .infer = attncl__check_activation,
    .launch = epilogue_launch,
    .flop = "2x",
};
