// SPDX-License-Identifier: MIT
//
// What the rounds of a loop (graph/graph.h) read and leave behind.
//
//   loop_round   y[0] = how many rounds came before in this run, or with `back` how many follow;
//                state: the number of the next one
//   loop_row     y = x[round]
//   loop_stack   y[round] = x, the other rows as they are: all of them after the last round
//   loop_sum     y = x in round `first`, y + x in the others: the sum after the last round
//
// Kernels: cl/op/loop.cl.

#include "op/op.h"

static attncl_status check_round(const struct tensor_desc *round)
{
    TRY(attncl__check_input("round", round, ATTNCL_I32, 1));
    REQUIRE(round->dim[0] == 1, ATTNCL_ERR_SHAPE, "round is %s, must be [1]", SHAPE(round));
    return ATTNCL_OK;
}

static attncl_status round_infer(struct op_sig *sig)
{
    const struct loop_round_fwd_params *params = sig->params;
    TRY(check_round(&sig->in[0]));
    REQUIRE(params->n_rounds >= 0, ATTNCL_ERR_ARGUMENT, "a loop of %d rounds", params->n_rounds);
    return attncl__infer_like_first(sig);
}

static attncl_status row_infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0];
    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    REQUIRE(x->rank >= 1, ATTNCL_ERR_SHAPE, "x is %s: it has no rows", SHAPE(x));
    TRY(check_round(&sig->in[1]));
    TRY(attncl__check_width("the first axis of x", x->dim[0]));
    return attncl__desc_make(ATTNCL_F32, x->rank - 1, x->dim + 1, &sig->out[0]);
}

static attncl_status stack_infer(struct op_sig *sig)
{
    const struct loop_stack_fwd_params *params = sig->params;
    const struct tensor_desc *x = &sig->in[0];
    int64_t dim[ATTNCL_MAX_RANK];
    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    TRY(check_round(&sig->in[1]));
    REQUIRE(x->rank < ATTNCL_MAX_RANK, ATTNCL_ERR_SHAPE, "x %s has %d axes, at most %d", SHAPE(x),
            x->rank, ATTNCL_MAX_RANK - 1);
    REQUIRE(params->n_rows >= 0, ATTNCL_ERR_ARGUMENT, "a stack of %d rows", params->n_rows);
    dim[0] = params->n_rows;
    memcpy(dim + 1, x->dim, (size_t)x->rank * sizeof dim[0]);
    return attncl__desc_make(ATTNCL_F32, x->rank + 1, dim, &sig->out[0]);
}

static attncl_status sum_infer(struct op_sig *sig)
{
    TRY(attncl__check_input("x", &sig->in[0], ATTNCL_F32, -1));
    TRY(check_round(&sig->in[1]));
    return attncl__infer_like_first(sig);
}

static attncl_status round_launch(struct launcher *l, const struct op_call *call)
{
    const struct loop_round_fwd_params *params = call->sig.params;
    struct kspec spec = kspec_begin("op/loop.cl", "loop_round_fwd");

    kspec_form(&spec, 1, 1);
    return attncl__launch(l, &spec, grid_1d(1, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]),
                               arg_i32(params->n_rounds), arg_i32(params->back)));
}

// One row of x to one of y; a side without rows has a stride of 0.
static attncl_status launch_copy(struct launcher *l, const struct op_call *call, int64_t count,
                                 int64_t n_rows, bool from_rows)
{
    const struct flat_pass p = attncl__flat_pass(l->caps, "op/loop.cl", "loop_copy_fwd", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i64(from_rows ? count : 0), arg_i64(from_rows ? 0 : count),
                               arg_i64(count), arg_i32(p.per_group), arg_i32(n_rows)));
}

static attncl_status row_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    return launch_copy(l, call, attncl__desc_count(&call->sig.out[0]), x->dim[0], true);
}

static attncl_status stack_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *y = &call->sig.out[0];
    return launch_copy(l, call, attncl__desc_count(&call->sig.in[0]), y->dim[0], false);
}

static attncl_status sum_launch(struct launcher *l, const struct op_call *call)
{
    const struct loop_sum_fwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    const struct flat_pass p = attncl__flat_pass(l->caps, "op/loop.cl", "loop_sum_fwd", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i32(params->first), arg_i64(count), arg_i32(p.per_group)));
}

// One row in and out.
static void row_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    *flop_ret = 0;
    *bytes_ret = 8 * (double)attncl__desc_count(&sig->out[0]);
}

static void stack_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    *flop_ret = 0;
    *bytes_ret = 8 * (double)attncl__desc_count(&sig->in[0]);
}

const struct op_class attncl__op_loop_round_fwd = {
    .name = "loop_round_fwd",
    .params_bytes = sizeof(struct loop_round_fwd_params),
    .n_in = 1,
    .n_out = 1,
    .state = 1u << 0,
    .infer = round_infer,
    .launch = round_launch,
};

const struct op_class attncl__op_loop_row_fwd = {
    .name = "loop_row_fwd",
    .params_bytes = sizeof(struct loop_row_fwd_params),
    .n_in = 2,
    .n_out = 1,
    .infer = row_infer,
    .launch = row_launch,
    .cost = row_cost,
};

const struct op_class attncl__op_loop_stack_fwd = {
    .name = "loop_stack_fwd",
    .params_bytes = sizeof(struct loop_stack_fwd_params),
    .n_in = 2,
    .n_out = 1,
    .infer = stack_infer,
    .launch = stack_launch,
    .cost = stack_cost,
};

const struct op_class attncl__op_loop_sum_fwd = {
    .name = "loop_sum_fwd",
    .params_bytes = sizeof(struct loop_sum_fwd_params),
    .n_in = 2,
    .n_out = 1,
    .infer = sum_infer,
    .launch = sum_launch,
};
