// SPDX-License-Identifier: MIT
//
// Up to eight inputs and results of a loop's iteration in one launch (recurrent/loop.c):
//
//   row      y = x[iteration]
//   stack    y[iteration] = x
//   sum      y = x in iteration `first`, y + x in the others
//
// No kernel: it is loop_copies_fwd of cl/recurrent/loop.cl.  All rows and stacks have n_rows rows.
//
// Created when a graph is compiled (compile/fusion_loop_copies.c), so that it has no gradient.

#include "op/fused/fused.h"

#include "op/row_launch.h"

static attncl_status infer(struct op_sig *sig)
{
    const struct fused_loop_copies_fwd_params *params = sig->params;

    for (int i = 0; i < params->n; ++i) {
        const struct tensor_desc *x = &sig->in[LOOP_COPIES_X + i];
        const int kind = attncl__loop_copy_kind(params->kinds, i);
        const int first = kind == LOOP_COPY_STACK ? 0 : kind == LOOP_COPY_SUM ? 1 : 2;
        int64_t dim[1 + ATTNCL_MAX_RANK] = {params->n_rows};
        assert(kind != LOOP_COPY_ROW || (x->rank >= 1 && x->dim[0] == params->n_rows));
        memcpy(dim + 1, x->dim, (size_t)x->rank * sizeof dim[0]);
        TRY(attncl__desc_make(ATTNCL_F32, 1 + x->rank - first, dim + first, &sig->out[i]));
    }
    return ATTNCL_OK;
}

// Elements that a part moves.
static int64_t count_of(const struct op_sig *sig, int part)
{
    const struct fused_loop_copies_fwd_params *params = sig->params;

    if (part >= params->n)
        return 0;
    return attncl__desc_count(attncl__loop_copy_kind(params->kinds, part) == LOOP_COPY_STACK
                                  ? &sig->in[LOOP_COPIES_X + part]
                                  : &sig->out[part]);
}

#define PART(i) arg_mem(call->in[LOOP_COPIES_X + (i)]), arg_mem(call->out[i]), arg_i64(count[i])

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct fused_loop_copies_fwd_params *params = call->sig.params;
    int64_t count[LOOP_COPIES_MAX], most = 0;

    for (int i = 0; i < LOOP_COPIES_MAX; ++i) {
        count[i] = count_of(&call->sig, i);
        most = count[i] > most ? count[i] : most;
    }
    if (most == 0)
        return ATTNCL_OK;
    const struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, "recurrent/loop.cl", "loop_copies_fwd", most);
    return attncl__launch(
        l, &p.spec, grid_2d(ceil_div(most, p.per_group), params->n, p.grid.local[0], 1),
        ARGS(arg_mem(call->in[LOOP_COPIES_ITERATION]), arg_i32(params->n_rows),
             arg_i32(params->first), arg_i32(params->kinds), arg_i32(p.per_group), PART(0), PART(1),
             PART(2), PART(3), PART(4), PART(5), PART(6), PART(7)));
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct fused_loop_copies_fwd_params *params = sig->params;

    *flop_ret = *bytes_ret = 0;
    for (int i = 0; i < params->n; ++i) {
        const bool sums = attncl__loop_copy_kind(params->kinds, i) == LOOP_COPY_SUM;
        *flop_ret += sums ? (double)count_of(sig, i) : 0;
        *bytes_ret += (sums ? 12 : 8) * (double)count_of(sig, i);
    }
}

#define X "x", F32 | OPTIONAL, NULL
#define Y "y", F32, NULL
const struct op_class attncl__op_fused_loop_copies_fwd = {
    .name = OP_CLASS(fused_loop_copies_fwd),
    .in = OP_IN({"iteration", I32, "1"}, {X}, {X}, {X}, {X}, {X}, {X}, {X}, {X}),
    .out = OP_OUT({Y}, {Y}, {Y}, {Y}, {Y}, {Y}, {Y}, {Y}),
    .infer = infer,
    .launch = launch,
    .cost = cost,
};
