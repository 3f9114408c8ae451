// SPDX-License-Identifier: MIT
//
// Adds rows of a position table.
//
//   add_positions     y[t, b, :] = x[t, b, :] + table[t, :]      or x [B, T, C]
//   add_position_at   y[b, :]    = x[b, :] + table[position, :]          one position for all b, or one for each
//
// The gradient of x is dy; that of table row t is the sum of dy over the batch at t, 0 for unused rows.
//
// No kernel: uses the embedding's, with x for the chosen rows, and cl/matmul/column_sum.cl.

#include "attncl/kinds.h"
#include "op/matmul/matmul.h"
#include "op/row_launch.h"
#include "op/view/view.h"

static int time_axis(const struct op_sig *sig)
{
    const struct add_positions_fwd_params *params = sig->params;
    return params->layout == ATTNCL_LAYOUT_TIME_FIRST ? 0 : 1;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct add_positions_fwd_params *params = sig->params;

    REQUIRE(params->layout == ATTNCL_LAYOUT_TIME_FIRST ||
                params->layout == ATTNCL_LAYOUT_BATCH_FIRST,
            ATTNCL_ERR_ARGUMENT, "there is no layout %d, only 0 and 1", (int)params->layout);
    TRY(attncl__check_shape(sig, 0, time_axis(sig) == 0 ? "T B C" : "B T C"));
    return attncl__check_at_most(sig, 'T', 'P');
}

// position: one for all rows, or one per row; if absent, row r has position r / inner % length.
static attncl_status launch(struct launcher *l, const struct op_call *call, struct span position,
                            int64_t inner, int64_t length)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    struct row_problem work = {kspec_begin("embedding/embedding.cl", "embedding_rows_fwd"),
                               rows.count, rows.width, 0,
                               attncl__rows_are_float4_aligned(x->start, &rows)};

    kspec_set_wtype(&work.spec, ATTNCL_F32);
    const struct row_launch p = attncl__choose_row_tiling(l, &work);

    const bool has_position = position.storage != NULL;

    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem((struct span){NULL}), arg_mem(call->in[0]), arg_mem(call->in[1]),
             arg_mem(position), arg_mem(call->out[0]), arg_i32(false), arg_i64(x->start),
             arg_i64(rows.count), arg_i64(rows.stride), arg_i32(0), arg_f32(1), arg_i32(true),
             arg_i32(has_position), arg_i32(has_position && call->sig.in[2].dim[0] > 1),
             arg_i64(inner), arg_i64(length), arg_i32(rows.width), arg_i64(rows.count),
             arg_i32(p.rows_per_group)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[0].dim;
    const int axis = time_axis(&call->sig);

    return launch(l, call, (struct span){NULL}, axis == 0 ? dim[1] : 1, dim[axis]);
}

static attncl_status at_infer(struct op_sig *sig)
{
    const int64_t *of = sig->axes->of;

    REQUIRE(of['N'] == 1 || of['N'] == of['B'], ATTNCL_ERR_SHAPE,
            "position has N = %" PRId64 ", must be 1 or B = %" PRId64, of['N'], of['B']);
    return ATTNCL_OK;
}

static attncl_status at_launch(struct launcher *l, const struct op_call *call)
{
    return launch(l, call, call->in[2], 1, call->sig.in[1].dim[0]);
}

// The sum over the batch: axis 1 of [T, B, C], or axis 0 of [B, T C].
static struct column_sum batch_column_sum(const struct op_sig *sig)
{
    const struct tensor_desc *dy = &sig->in[0];

    if (time_axis(sig) == 0)
        return (struct column_sum){dy->dim[0], dy->dim[1], dy->dim[2]};
    return (struct column_sum){1, dy->dim[0], dy->dim[1] * dy->dim[2]};
}

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct column_sum s = batch_column_sum(sig);
    *bytes_ret = attncl__column_sum_scratch(&s);
    return ATTNCL_OK;
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct column_sum s = batch_column_sum(&call->sig);

    TRY(attncl__zeros(l, call->out[0], 0, attncl__desc_count(&call->sig.out[0])));
    return attncl__launch_column_sum(l, &s, call->in[0], call->out[0], call->scratch);
}

const struct op_class attncl__op_add_positions_bwd = {
    .name = OP_CLASS(add_positions_bwd),
    .in = OP_IN({"dy", F32, NULL}, {"table", F32, "P C"}),
    .out = OP_OUT({"dtable", F32, "P C"}),
    .int_axes = "PC",
    .infer = fwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
};

static const struct grad_rule fwd_grad[] = {
    {.in = {REF_DY(0)}, .out = {REF_DX(0)}},
    {.op = OP_add_positions_bwd,
     .same_params = true,
     .in = {REF_DY(0), REF_X(1)},
     .out = {REF_DX(1)}},
};

static double count_positions(const struct op_sig *sig)
{
    return (double)sig->in[0].dim[time_axis(sig)];
}

const struct op_class attncl__op_add_positions_fwd = {
    .name = OP_CLASS(add_positions_fwd),
    .in = OP_IN({"x", F32 | STRIDED, NULL}, {"table", F32, "P C"}),
    .out = OP_OUT({"y", F32, "=x"}),
    .int_axes = "PC",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "y",
    .pairs = count_positions,
    .moved = {[1] = "pC"}, // only the table's rows that are read
    .grad = GRAD_RULES(fwd_grad),
};

const struct op_class attncl__op_add_position_at_fwd = {
    .name = OP_CLASS(add_position_at_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "B C"}, {"table", F32, "P C"}, {"position", I32, "N"}),
    .out = OP_OUT({"y", F32, "B C"}),
    .int_axes = "C",
    .filled_axes = "P",
    .infer = at_infer,
    .launch = at_launch,
    .flop = "y",
    .moved = {[1] = "NC"},
};
