// SPDX-License-Identifier: MIT
//
// The small passes around the gradients of attention-free mixing (cl/aft/aft_bwd.cl).

#include "op/aft/aft.h"
#include "op/row_launch.h"

// A work-item per element, or per vector, with the gate pass's work-group size: they share a program.
static struct elementwise_launch choose_item_launch(const struct launcher *l, const char *kernel,
                                                    int64_t n, bool vectors)
{
    struct elementwise_launch p = attncl__elementwise_launch(l->caps, "aft/aft_bwd.cl", kernel, n);
    const size_t local = p.grid.local[0];

    p.grid = grid_1d(ceil_div(n, (int64_t)local * (vectors ? p.vw : 1)), local);
    return p;
}

attncl_status attncl__aft_bwd_launch_gate(struct launcher *l, const struct op_call *call)
{
    const int64_t count = attncl__desc_count(&call->sig.in[AFT_IN_Q]);
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "aft/aft_bwd.cl", "aft_bwd_gate", count);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[AFT_IN_Q]), arg_mem(call->in[AFT_IN_Y]),
                               arg_mem(call->in[AFT_IN_G]), arg_mem(call->out[0]), arg_i64(count),
                               arg_i32(p.per_group)));
}

attncl_status attncl__aft_bwd_launch_bias_reversal(struct launcher *l, const struct op_call *call,
                                                   const struct aft_tiling *p,
                                                   int64_t reversed_bias_at)
{
    const struct tensor_desc *w = &call->sig.in[AFT_IN_BIAS];

    if (p->per_head) {
        const struct elementwise_launch s =
            choose_item_launch(l, "aft_bwd_reverse_filter", p->heads, false);
        return attncl__launch(l, &s.spec, s.grid,
                              ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_mem(call->scratch),
                                   arg_i64(reversed_bias_at), arg_i32(p->heads),
                                   arg_i32(w->dim[1])));
    }
    if (p->window == 0)
        return ATTNCL_OK;
    const struct elementwise_launch s =
        choose_item_launch(l, "aft_bwd_reverse_table", p->steps, false);
    return attncl__launch(l, &s.spec, s.grid,
                          ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_i32(w->dim[1]),
                               arg_mem(call->scratch), arg_i64(reversed_bias_at), arg_i32(p->steps),
                               arg_i32(p->window)));
}

attncl_status attncl__aft_bwd_launch_sums(struct launcher *l, const struct aft_sums *s)
{
    const struct elementwise_launch p = choose_item_launch(l, "aft_bwd_sums", s->count, true);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(s->x), arg_i64(s->x_start), arg_i64(s->x_row), arg_i32(s->n),
                               arg_i32(s->count), arg_i32(s->down), arg_mem(s->y),
                               arg_i64(s->y_start)));
}
