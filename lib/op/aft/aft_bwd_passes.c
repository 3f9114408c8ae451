// SPDX-License-Identifier: MIT
//
// The small passes around the gradients of attention-free mixing (cl/aft/aft_bwd.cl).

#include "op/aft/aft.h"
#include "op/row_launch.h"

attncl_status attncl__aft_bwd_gate(struct launcher *l, const struct op_call *call)
{
    const int64_t count = attncl__desc_count(&call->sig.in[AFT_IN_Q]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "aft/aft_bwd.cl", "aft_bwd_gate", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[AFT_IN_Q]), arg_mem(call->in[AFT_IN_Y]),
                               arg_mem(call->in[AFT_IN_G]), arg_mem(call->out[0]), arg_i64(count),
                               arg_i32(p.per_group)));
}

// A kernel with one work-item for each of `count` things, in GPU variant 64 to a work-group.
static struct group_launch pass_of(const struct launcher *l, const char *kernel, int64_t count,
                                   struct grid *grid_ret)
{
    enum { WIDTH = 4 * 64 };
    const struct group_launch p = attncl__group_launch(l->caps, "aft/aft_bwd.cl", kernel, WIDTH);

    *grid_ret = grid_1d(ceil_div(count, (int64_t)p.local), p.local);
    return p;
}

attncl_status attncl__aft_bwd_turn(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, int64_t turned_at)
{
    const struct tensor_desc *w = &call->sig.in[AFT_IN_BIAS];
    struct grid grid;

    if (p->per_head) {
        const struct group_launch s = pass_of(l, "aft_bwd_flip", p->heads, &grid);
        return attncl__launch(l, &s.spec, grid,
                              ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_mem(call->scratch),
                                   arg_i64(turned_at), arg_i32(p->heads), arg_i32(w->dim[1])));
    }
    if (p->window == 0)
        return ATTNCL_OK;
    const struct group_launch s = pass_of(l, "aft_bwd_turn", p->steps, &grid);
    return attncl__launch(l, &s.spec, grid,
                          ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_i32(w->dim[1]),
                               arg_mem(call->scratch), arg_i64(turned_at), arg_i32(p->steps),
                               arg_i32(p->window)));
}

attncl_status attncl__aft_bwd_sums(struct launcher *l, const struct aft_sums *s)
{
    const int64_t vw = l->caps->variant == VARIANT_CPU ? l->caps->vector_width : 1;
    struct grid grid;
    const struct group_launch p = pass_of(l, "aft_bwd_sums", ceil_div(s->count, vw), &grid);

    return attncl__launch(l, &p.spec, grid,
                          ARGS(arg_mem(s->x), arg_i64(s->x_start), arg_i64(s->x_row), arg_i32(s->n),
                               arg_i32(s->count), arg_i32(s->down), arg_mem(s->y),
                               arg_i64(s->y_start)));
}
