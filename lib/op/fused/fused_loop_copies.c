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

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    struct loop_part part[LOOP_COPIES_MAX];

    for (int i = 0; i < LOOP_COPIES_MAX; ++i)
        part[i] =
            (struct loop_part){call->in[LOOP_COPIES_X + i], call->out[i], count_of(&call->sig, i)};
    return attncl__loop_copies(l, call->in[LOOP_COPIES_ITERATION], call->sig.params, part);
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
