// SPDX-License-Identifier: MIT
//
// Gradients of views (cl/view/copy.cl, view_scatter_add.cl).
//
//   zeros              y = 0, of the shape in the parameters
//   view_scatter_add   y[j] = sum of x_k[i] over inputs k and indices i with
//                      j = start_k + i . stride_k
//
// view_scatter_add is the transpose of reading views of y: it adds the inputs, one after another, at
// their views' positions, or only copies them if the views fill y without overlap.

#include "op/view/view.h"

#include "op/row_launch.h"

static attncl_status zeros_infer(struct op_sig *sig)
{
    const struct zeros_fwd_params *params = sig->params;
    return attncl__desc_make(ATTNCL_F32, params->shape.rank, params->shape.dim, &sig->out[0]);
}

attncl_status attncl__zeros(struct launcher *l, struct span y, int64_t start, int64_t count)
{
    const struct elementwise_launch p = attncl__elementwise_launch(
        l->caps, "view/view_scatter_add.cl", "view_scatter_add_fill", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(y), arg_i64(start), arg_i64(count), arg_i32(p.per_group)));
}

static attncl_status zeros_launch(struct launcher *l, const struct op_call *call)
{
    return attncl__zeros(l, call->out[0], 0, attncl__desc_count(&call->sig.out[0]));
}

const struct op_class attncl__op_zeros_fwd = {
    .name = OP_CLASS(zeros_fwd),
    .out = OP_OUT({"y", F32, NULL}),
    .infer = zeros_infer,
    .launch = zeros_launch,
};

static attncl_status scatter_infer(struct op_sig *sig)
{
    const struct view_scatter_add_fwd_params *params = sig->params;

    for (int i = 0; i < sig->n_in && attncl__desc_present(&sig->in[i]); ++i) {
        const struct tensor_desc *x = &sig->in[i], *view = &params->view[i];
        REQUIRE(attncl__desc_count(x) == attncl__desc_count(view), ATTNCL_ERR_SHAPE,
                "x is %s, its view %s", SHAPE(x), SHAPE(view));
        REQUIRE(view->start >= 0 && attncl__desc_end(view) <= params->count, ATTNCL_ERR_SHAPE,
                "a view ends at %" PRId64 ", its base at %" PRId64, attncl__desc_end(view),
                params->count);
    }
    sig->axes->of['N'] = params->count;
    return ATTNCL_OK;
}

// True when two views are known to share no element: disjoint ranges, or columns of one matrix.
static bool are_disjoint(const struct tensor_desc *a, const struct tensor_desc *b)
{
    struct rows ra, rb;

    if (attncl__desc_end(a) <= b->start || attncl__desc_end(b) <= a->start)
        return true;
    if (!attncl__desc_rows(a, &ra) || !attncl__desc_rows(b, &rb) || ra.stride != rb.stride)
        return false;
    const int64_t left_a = a->start % ra.stride, left_b = b->start % ra.stride;
    return left_a + ra.width <= ra.stride && left_b + rb.width <= ra.stride &&
           (left_a + ra.width <= left_b || left_b + rb.width <= left_a);
}

// True when the views fill y and no two of them overlap.
static bool are_tiles(const struct op_sig *sig)
{
    const struct view_scatter_add_fwd_params *params = sig->params;
    int64_t count = 0;

    for (int i = 0; i < sig->n_in && attncl__desc_present(&sig->in[i]); ++i) {
        for (int j = 0; j < i; ++j)
            if (!are_disjoint(&params->view[i], &params->view[j]))
                return false;
        count += attncl__desc_count(&params->view[i]);
    }
    return count == params->count;
}

static attncl_status scatter_launch(struct launcher *l, const struct op_call *call)
{
    const struct view_scatter_add_fwd_params *params = call->sig.params;
    const bool tiles = are_tiles(&call->sig);

    if (!tiles)
        TRY(zeros_launch(l, call));
    for (int i = 0; i < call->sig.n_in && attncl__desc_present(&call->sig.in[i]); ++i)
        TRY(attncl__copy_view(l, &(struct view_copy){.from = call->in[i],
                                                     .to = call->out[0],
                                                     .view = &params->view[i],
                                                     .scatter = true,
                                                     .add = !tiles}));
    return ATTNCL_OK;
}

#define MORE "x", F32 | OPTIONAL, NULL
const struct op_class attncl__op_view_scatter_add_fwd = {
    .name = OP_CLASS(view_scatter_add_fwd),
    .in = OP_IN({"x", F32, NULL}, {MORE}, {MORE}, {MORE}, {MORE}, {MORE}, {MORE}, {MORE}, {MORE},
                {MORE}),
    .out = OP_OUT({"base", F32, "N"}),
    .infer = scatter_infer,
    .launch = scatter_launch,
};
