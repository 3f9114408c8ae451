// SPDX-License-Identifier: MIT
//
// Inverted dropout, plus an optional residual (cl/elementwise/dropout.cl):
//
//   y = x / (1 - p) where the element is kept, else 0   [+ residual]
//
// Each block of four elements of the last axis, padded to a multiple of 4, has its own counter of the
// random generator.  With a position, x is row `position` of a larger array; with a batch_total, it
// is part of a larger batch.  dx is the same op applied to dy, which recomputes the mask.

#include "op/dropout_mask.h"
#include "op/row_launch.h"

enum { X, STEP, POSITION, RESIDUAL };

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct dropout_fwd_params *params = sig->params;
    const struct tensor_desc *x = &sig->in[X];
    const int64_t axis = params->batch_axis, total = params->batch_total;

    REQUIRE(total == 0 || (axis >= 0 && axis < x->rank - 1), ATTNCL_ERR_ARGUMENT,
            "dropout's batch is axis %" PRId64 " of x %s, must be before the last", axis, SHAPE(x));
    TRY(attncl__check_dropout(params, &sig->in[STEP], total == 0 ? 0 : x->dim[axis]));
    return x->rank > 0 ? attncl__check_width("the last axis of x", x->dim[x->rank - 1]) : ATTNCL_OK;
}

// The position of x's rows (all axes but the last) among the whole batch's rows.
struct batch_rows {
    int64_t all;         // rows of the whole batch
    int64_t first;       // index of x's first row
    int64_t n_part, gap; // n_part consecutive rows of x alternate with `gap` rows of other parts
};

static struct batch_rows batch_rows(const struct dropout_fwd_params *params,
                                    const struct tensor_desc *x, int64_t n_rows)
{
    if (params->batch_total == 0)
        return (struct batch_rows){.all = n_rows, .n_part = n_rows};
    const int axis = (int)params->batch_axis;
    const int64_t n = x->dim[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank - 1; ++i)
        inner *= x->dim[i];
    return (struct batch_rows){
        .all = n_rows / n * params->batch_total,
        .first = params->batch_begin * inner,
        .n_part = n * inner,
        .gap = (params->batch_total - n) * inner,
    };
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct dropout_fwd_params *params = call->sig.params;
    const struct tensor_desc *x = &call->sig.in[X];
    const int64_t count = attncl__desc_count(x), width = x->rank > 0 ? x->dim[x->rank - 1] : 1;
    if (count == 0)
        return ATTNCL_OK;
    const struct batch_rows rows = batch_rows(params, x, count / width);
    struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "elementwise/dropout.cl", "dropout_spans_fwd", count);
    // Rows of whole blocks without gaps form one run of blocks, split to suit the device.
    const bool whole = width % 4 == 0 && rows.gap == 0;
    const int64_t blocks = ceil_div(width, 4);
    const int64_t span = whole ? 4 * ceil_div(p.per_group, 4) : width;
    const int64_t per_group = whole || p.per_group < width ? 1 : p.per_group / width;

    p.grid = grid_1d(ceil_div(count, span * per_group), p.grid.local[0]);
    kspec_int(&p.spec, "RESIDUAL", attncl__desc_present(&call->sig.in[RESIDUAL]));
    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem(call->in[X]), arg_mem(call->in[RESIDUAL]), arg_mem(call->out[0]),
             arg_i64(count), arg_i32(span), arg_i32(per_group), arg_mem(call->in[POSITION]),
             arg_i32(attncl__desc_present(&call->sig.in[POSITION])), arg_i64(rows.all * blocks),
             arg_i64(rows.first * blocks), arg_i64(whole ? INT64_MAX : rows.n_part),
             arg_i64(rows.gap * blocks), DROPOUT_ARGS(params, call->in[STEP])));
}

static const struct grad_rule fwd_grad[] = {
    {.op = OP_dropout_fwd,
     .same_params = true,
     .in = {REF_DY(0), REF_X(STEP), REF_X(POSITION)},
     .out = {REF_DX(X)}},
    {.in = {REF_DY(0)}, .out = {REF_DX(RESIDUAL)}},
};

const struct op_class attncl__op_dropout_fwd = {
    .name = OP_CLASS(dropout_fwd),
    .in = OP_IN({"x", F32, "..."}, {"step", I32, ""}, {"position", I32 | OPTIONAL, "1"},
                {"residual", F32 | OPTIONAL, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "2x",
    .grad = GRAD_RULES(fwd_grad),
};
