// SPDX-License-Identifier: MIT
//
// The small passes around the gradients of attention-free mixing (cl/aft/aft_bwd.cl).

#include "op/aft/aft.h"

// One work-item for `per_item` of `count` things.
struct small {
    struct kspec spec;
    struct grid grid;
};

static struct small small_pass(const struct launcher *l, const char *kernel, int64_t work_items)
{
    enum { GPU_GROUP = 64 };
    const bool cpu = l->caps->variant == VARIANT_CPU;
    const size_t group = l->caps->max_group < GPU_GROUP ? l->caps->max_group : GPU_GROUP;
    const size_t local = cpu ? 1 : group;
    struct small s = {kspec_begin("aft/aft_bwd.cl", kernel),
                      grid_1d(ceil_div(work_items, (int64_t)local), local)};

    kspec_set_vw_ls(&s.spec, cpu ? l->caps->vector_width : 1, local);
    return s;
}

static int64_t per_item(const struct launcher *l)
{
    enum { CPU_ITEM = 4096, GPU_ITEM = 4 };
    return l->caps->variant == VARIANT_CPU ? CPU_ITEM : GPU_ITEM;
}

attncl_status attncl__aft_bwd_gate(struct launcher *l, const struct op_call *call)
{
    const int64_t count = attncl__desc_count(&call->sig.in[AFT_IN_Q]), each = per_item(l);
    const struct small s = small_pass(l, "aft_bwd_gate", ceil_div(count, each));

    return attncl__launch(l, &s.spec, s.grid,
                          ARGS(arg_mem(call->in[AFT_IN_Q]), arg_mem(call->in[AFT_IN_Y]),
                               arg_mem(call->in[AFT_IN_G]), arg_mem(call->out[0]), arg_i64(count),
                               arg_i32(each)));
}

attncl_status attncl__aft_bwd_zero(struct launcher *l, struct span x, int64_t start, int64_t count)
{
    const int64_t each = per_item(l);
    const struct small s = small_pass(l, "aft_bwd_zero", ceil_div(count, each));

    return attncl__launch(l, &s.spec, s.grid,
                          ARGS(arg_mem(x), arg_i64(start), arg_i64(count), arg_i32(each)));
}

attncl_status attncl__aft_bwd_turn(struct launcher *l, const struct op_call *call,
                                   const struct aft_tiling *p, int64_t turned_at)
{
    const struct tensor_desc *w = &call->sig.in[AFT_IN_BIAS];

    if (p->per_head) {
        const struct small s = small_pass(l, "aft_bwd_flip", p->heads);
        return attncl__launch(l, &s.spec, s.grid,
                              ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_mem(call->scratch),
                                   arg_i64(turned_at), arg_i32(p->heads), arg_i32(w->dim[1])));
    }
    if (p->window == 0)
        return ATTNCL_OK;
    const struct small s = small_pass(l, "aft_bwd_turn", p->steps);
    return attncl__launch(l, &s.spec, s.grid,
                          ARGS(arg_mem(call->in[AFT_IN_BIAS]), arg_i32(w->dim[1]),
                               arg_mem(call->scratch), arg_i64(turned_at), arg_i32(p->steps),
                               arg_i32(p->window)));
}

attncl_status attncl__aft_bwd_sums(struct launcher *l, const struct aft_sums *s)
{
    const int64_t vw = l->caps->variant == VARIANT_CPU ? l->caps->vector_width : 1;
    const struct small p = small_pass(l, "aft_bwd_sums", ceil_div(s->count, vw));

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(s->x), arg_i64(s->x_start), arg_i64(s->x_row), arg_i32(s->n),
                               arg_i32(s->count), arg_i32(s->down), arg_mem(s->y),
                               arg_i64(s->y_start)));
}
