// SPDX-License-Identifier: MIT
//
// One position t of a causal spatial gate, the earlier ones remembered.
//
//   history[t] = u
//   y[b, c] = z1[b, c] * (sum over j <= t of W[t, j] history[j, b, c] + bias[t])
//
// Costs O(t B C) (cl/matmul/spatial_gate_step.cl).

#include "op/op.h"
#include "op/row_launch.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *weight = &sig->in[0], *bias = &sig->in[1], *u = &sig->in[2];
    const struct tensor_desc *z1 = &sig->in[3], *position = &sig->in[4], *history = &sig->in[5];

    TRY(attncl__check_input("weight", weight, ATTNCL_F32, 2));
    TRY(attncl__check_input("bias", bias, ATTNCL_F32, 1));
    TRY(attncl__check_input("u", u, ATTNCL_F32, 2));
    TRY(attncl__check_input("z1", z1, ATTNCL_F32, 2));
    TRY(attncl__check_index("position", position));
    TRY(attncl__check_input("history", history, ATTNCL_F32, 3));
    REQUIRE(weight->dim[0] == weight->dim[1] && weight->dim[0] >= 1, ATTNCL_ERR_SHAPE,
            "weight is %s, must be square and not empty", SHAPE(weight));
    REQUIRE(bias->dim[0] == weight->dim[0], ATTNCL_ERR_SHAPE, "weight is %s, bias is %s",
            SHAPE(weight), SHAPE(bias));
    REQUIRE(attncl__desc_same_shape(u, z1), ATTNCL_ERR_SHAPE, "u is %s, z1 is %s", SHAPE(u),
            SHAPE(z1));
    REQUIRE(history->dim[0] == weight->dim[0] && history->dim[1] == u->dim[0] &&
                history->dim[2] == u->dim[1],
            ATTNCL_ERR_SHAPE, "history is %s, weight is %s, u is %s: must be [n, B, C]",
            SHAPE(history), SHAPE(weight), SHAPE(u));
    TRY(attncl__check_width("the first axis of weight", weight->dim[0]));
    TRY(attncl__check_width("the last axis of u", u->dim[1]));
    return attncl__desc_make(ATTNCL_F32, u->rank, u->dim, &sig->out[0]);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    enum { CHANNELS = 64 }; // of a work-group: few, as one position has little work to share out
    const struct group_launch p = attncl__group_launch(l->caps, "matmul/spatial_gate_step.cl",
                                                       "spatial_gate_step_fwd", CHANNELS);
    const struct tensor_desc *u = &call->sig.in[2], *z1 = &call->sig.in[3];
    const int64_t batch = u->dim[0], width = u->dim[1];
    const struct rows rows = attncl__rows(z1);

    return attncl__launch(l, &p.spec, grid_2d(ceil_div(width, CHANNELS), batch, p.local, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->in[3]), arg_mem(call->in[4]), arg_mem(call->in[5]),
                               arg_mem(call->out[0]), arg_i64(z1->start), arg_i64(rows.stride),
                               arg_i32(call->sig.in[0].dim[0]), arg_i32(width), arg_i32(CHANNELS)));
}

// At the last position: earlier ones cost less, but which it is, only the device knows.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double n = (double)sig->in[0].dim[0], count = (double)attncl__desc_count(&sig->out[0]);
    *flop_ret = 2 * n * count;
    *bytes_ret = 4 * (n + n * count + 4 * count);
}

const struct op_class attncl__op_spatial_gate_step_fwd = {
    .name = OP_CLASS(spatial_gate_step_fwd, 6, 1),
    .strided = 1u << 3,
    .state = 1u << 5,
    .infer = fwd_infer,
    .launch = fwd_launch,
    .cost = fwd_cost,
};
