// SPDX-License-Identifier: MIT
//
// Inputs and results of the iterations of a loop (graph/graph.h).
//
//   loop_index   y[0] = the number of iterations before this one or, with `reversed`, after it;
//                state: the index of the next iteration
//   loop_row     y = x[iteration]
//   loop_stack   y[iteration] = x, other rows unchanged: complete after the last iteration
//   loop_sum     y = x in iteration `first`, y + x in the others: the sum after the last iteration
//
// Kernels: cl/recurrent/loop.cl.

#include "op/row_launch.h"

static attncl_status index_infer(struct op_sig *sig)
{
    const struct loop_index_fwd_params *params = sig->params;
    REQUIRE(params->trip_count >= 0, ATTNCL_ERR_ARGUMENT, "a loop of %d iterations",
            params->trip_count);
    return ATTNCL_OK;
}

static attncl_status stack_infer(struct op_sig *sig)
{
    const struct loop_stack_fwd_params *params = sig->params;
    REQUIRE(params->n_rows >= 0, ATTNCL_ERR_ARGUMENT, "a stack of %d rows", params->n_rows);
    sig->axes->of['N'] = params->n_rows;
    return ATTNCL_OK;
}

static attncl_status index_launch(struct launcher *l, const struct op_call *call)
{
    const struct loop_index_fwd_params *params = call->sig.params;
    struct kspec spec = kspec_begin("recurrent/loop.cl", "loop_index_fwd");

    kspec_set_vw_ls(&spec, 1, 1);
    return attncl__launch(l, &spec, grid_1d(1, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]),
                               arg_i32(params->trip_count), arg_i32(params->reversed)));
}

enum { COPY_ROW, COPY_STACK, COPY_SUM };

// Adjacent copies of an iteration share a launch.  bound: the number of rows; for a sum its first
// iteration.
static attncl_status launch_copy(struct launcher *l, const struct op_call *call, int kind,
                                 const struct tensor_desc *moved, int64_t bound)
{
    const int64_t count = attncl__desc_count(moved);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "recurrent/loop.cl", "loop_copies_fwd", count);

    return attncl__launch_part(l, &p.spec, p.grid, ARGS(arg_mem(call->in[1])),
                               ARGS(arg_mem(call->in[0]), arg_written(call->out[0]), arg_i32(kind),
                                    arg_i32(bound), arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status row_launch(struct launcher *l, const struct op_call *call)
{
    return launch_copy(l, call, COPY_ROW, &call->sig.out[0], call->sig.in[0].dim[0]);
}

static attncl_status stack_launch(struct launcher *l, const struct op_call *call)
{
    return launch_copy(l, call, COPY_STACK, &call->sig.in[0], call->sig.out[0].dim[0]);
}

static attncl_status sum_launch(struct launcher *l, const struct op_call *call)
{
    const struct loop_sum_fwd_params *params = call->sig.params;
    return launch_copy(l, call, COPY_SUM, &call->sig.out[0], params->first);
}

const struct op_class attncl__op_loop_index_fwd = {
    .name = OP_CLASS(loop_index_fwd),
    .in = OP_IN({"iteration", I32 | STATE, "1"}),
    .out = OP_OUT({"index", I32, "1"}),
    .infer = index_infer,
    .launch = index_launch,
};

const struct op_class attncl__op_loop_row_fwd = {
    .name = OP_CLASS(loop_row_fwd),
    .in = OP_IN({"x", F32, "N ..."}, {"iteration", I32, "1"}),
    .out = OP_OUT({"y", F32, "..."}),
    .int_axes = "N",
    .launch = row_launch,
    .moved = {[0] = "y"}, // one row in and out
};

const struct op_class attncl__op_loop_stack_fwd = {
    .name = OP_CLASS(loop_stack_fwd),
    .in = OP_IN({"x", F32, "..."}, {"iteration", I32, "1"}),
    .out = OP_OUT({"y", F32, "N ..."}),
    .infer = stack_infer,
    .launch = stack_launch,
    .moved = {[2] = "x"},
};

const struct op_class attncl__op_loop_sum_fwd = {
    .name = OP_CLASS(loop_sum_fwd),
    .in = OP_IN({"x", F32, "..."}, {"iteration", I32, "1"}),
    .out = OP_OUT({"y", F32, "..."}),
    .launch = sum_launch,
};
