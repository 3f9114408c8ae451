// SPDX-License-Identifier: MIT
//
// Inverted dropout, and a residual added to what is left (cl/elementwise/dropout.cl):
//
//   y = x / (1 - p) where the element is kept, else 0   [+ residual]
//
// Blocks of four elements of the last axis, which counts as padded to a multiple of 4, have one
// counter of the generator.  With a position the array is row `position` of a larger one.  dx is the
// same op on dy: the mask is computed again.

#include "op/dropout_mask.h"
#include "op/row_launch.h"

enum { X, STEP, POSITION, RESIDUAL };

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct dropout_fwd_params *params = sig->params;
    const struct tensor_desc *x = &sig->in[X], *residual = &sig->in[RESIDUAL];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    TRY(attncl__check_dropout(params, &sig->in[STEP]));
    if (x->rank > 0)
        TRY(attncl__check_width("the last axis of x", x->dim[x->rank - 1]));
    if (attncl__desc_present(&sig->in[POSITION]))
        TRY(attncl__check_index("position", &sig->in[POSITION]));
    if (attncl__desc_present(residual)) {
        TRY(attncl__check_input("residual", residual, ATTNCL_F32, -1));
        REQUIRE(attncl__desc_same_shape(x, residual), ATTNCL_ERR_SHAPE, "residual is %s, x is %s",
                SHAPE(residual), SHAPE(x));
    }
    return attncl__infer_like_first(sig);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct dropout_fwd_params *params = call->sig.params;
    const struct tensor_desc *x = &call->sig.in[X];
    const int64_t count = attncl__desc_count(x), width = x->rank > 0 ? x->dim[x->rank - 1] : 1;
    const int64_t all_blocks = count / width * ceil_div(width, 4);
    struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "elementwise/dropout.cl", "dropout_spans_fwd", count);
    // Rows of whole blocks are one line of blocks, cut as suits the device.
    const bool whole = width % 4 == 0;
    const int64_t span = whole ? 4 * ceil_div(p.per_group, 4) : width;
    const int64_t per_group = whole || p.per_group < width ? 1 : p.per_group / width;

    p.grid = grid_1d(ceil_div(count, span * per_group), p.grid.local[0]);
    kspec_int(&p.spec, "RESIDUAL", attncl__desc_present(&call->sig.in[RESIDUAL]));
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[X]), arg_mem(call->in[RESIDUAL]),
                               arg_mem(call->out[0]), arg_i64(count), arg_i32(span),
                               arg_i32(per_group), arg_mem(call->in[POSITION]),
                               arg_i32(attncl__desc_present(&call->sig.in[POSITION])),
                               arg_i64(all_blocks), DROPOUT_ARGS(params, call->in[STEP])));
}

static const struct grad_rule fwd_grad[] = {
    {.op = OP_dropout_fwd,
     .same_params = true,
     .in = {REF_DY(0), REF_X(STEP), REF_X(POSITION)},
     .out = {REF_DX(X)}},
    {.in = {REF_DY(0)}, .out = {REF_DX(RESIDUAL)}},
};

const struct op_class attncl__op_dropout_fwd = {
    .name = OP_CLASS(dropout_fwd, 4, 1),
    .optional = 1u << POSITION | 1u << RESIDUAL,
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop_per_element = 2,
    .grad = GRAD_RULES(fwd_grad),
};
