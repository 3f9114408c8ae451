// SPDX-License-Identifier: MIT
//
// Elementwise activations: y = f(x), or f(x + bias), f one of attncl_activation
// (cl/elementwise/activation.cl).

#include "attncl/kinds.h"
#include "op/row_launch.h"

enum { ARGUMENT = 1 }; // output: x + bias, only for gradients

// y = f(x)
static attncl_status launch_flat(struct launcher *l, const struct op_call *call, int32_t kind,
                                 struct span x)
{
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    struct elementwise_launch p = attncl__elementwise_launch(l->caps, "elementwise/activation.cl",
                                                             "activation_flat_fwd", count);

    kspec_int(&p.spec, "KIND", kind);
    kspec_int(&p.spec, "USE_PREFETCH", l->caps->builtin_prefetch);
    attncl__set_no_row_sharing(&p.spec, p.grid.local[0]);
    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem(x), arg_mem(call->out[0]), arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct activation_fwd_params *params = call->sig.params;
    return launch_flat(l, call, params->kind, call->in[0]);
}

static attncl_status launch_rows(struct launcher *l, const struct op_call *call, int32_t kind,
                                 struct span y)
{
    const int64_t width = call->sig.in[1].dim[0];
    const int64_t rows = attncl__desc_count(&call->sig.out[0]) / width;
    struct row_problem work = {kspec_begin("elementwise/activation.cl", "activation_rows_fwd"),
                               rows, width, 0, width % 4 == 0};
    kspec_int(&work.spec, "KIND", kind);
    kspec_int(&work.spec, "USE_PREFETCH", l->caps->builtin_prefetch);
    const struct row_launch p = attncl__choose_row_tiling(l, &work);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(y),
                               arg_i32(width), arg_i64(rows), arg_i32(p.rows_per_group)));
}

static attncl_status bias_launch(struct launcher *l, const struct op_call *call)
{
    const struct bias_activation_fwd_params *params = call->sig.params;

    if (!attncl__desc_present(&call->sig.out[ARGUMENT]))
        return launch_rows(l, call, params->kind, call->out[0]);
    TRY(launch_rows(l, call, ATTNCL_IDENTITY, call->out[ARGUMENT]));
    return launch_flat(l, call, params->kind, call->out[ARGUMENT]);
}

static const struct grad_rule fwd_grad[] = {{.op = OP_activation_bwd,
                                             .same_params = true,
                                             .in = {REF_X(0), REF_DY(0)},
                                             .out = {REF_DX(0)}}};

const struct op_class attncl__op_activation_fwd = {
    .name = OP_CLASS(activation_fwd),
    .in = OP_IN({"x", F32, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .infer = attncl__check_activation,
    .launch = fwd_launch,
    .flop = "x",
    .grad = GRAD_RULES(fwd_grad),
};

// ReLU's slope follows from its result, so the argument is not saved.
static bool is_relu(const struct op_sig *sig)
{
    const struct bias_activation_fwd_params *params = sig->params;
    return params->kind == ATTNCL_RELU;
}

static bool needs_argument(const struct op_sig *sig)
{
    return !is_relu(sig);
}

// REF_TEMP(0): the gradient of x + bias.
static const struct grad_rule bias_grad[] = {
    {.op = OP_activation_bwd,
     .same_params = true,
     .in = {REF_Y(ARGUMENT), REF_DY(0)},
     .out = {REF_TEMP(0)},
     .when = needs_argument},
    {.op = OP_activation_bwd,
     .same_params = true,
     .in = {REF_Y(0), REF_DY(0)},
     .out = {REF_TEMP(0)},
     .when = is_relu},
    {.in = {REF_TEMP(0)}, .out = {REF_DX(0)}},
    {.op = OP_linear_bwd_bias, .in = {REF_TEMP(0)}, .out = {REF_DX(1)}},
};

const struct op_class attncl__op_bias_activation_fwd = {
    .name = OP_CLASS(bias_activation_fwd),
    .in = OP_IN({"x", F32, "... C"}, {"bias", F32, "C"}),
    .out = OP_OUT({"y", F32, "... C"}, {"argument", F32 | FOR_BACKWARD, "... C"}),
    .int_axes = "C",
    .infer = attncl__check_activation,
    .launch = bias_launch,
    .flop = "2x",
    .grad = GRAD_RULES(bias_grad),
};
