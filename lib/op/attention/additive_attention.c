// SPDX-License-Identifier: MIT
//
// Additive attention, fused: [B, T, S, N] is never formed.
//
//   y_i = sum_j m_ij p_ij v_j,   p_ij = softmax over j of w . tanh(q_i + k_j),   q, k of N channels
//
// m is the mask of dropout, [B, T, S], with a position that of a larger one's row; or 1.  The weights
// that are asked for are p.
//
// Keys at or beyond a length score -1e6, as in masked_softmax.  Kernel:
// cl/attention/additive_attention.cl.

#include "op/attention/additive_attention.h"

enum { MASKING_LENS = 2 }; // of cl/attention/attention.clh

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct additive_attention_fwd_params *params = sig->params;

    if (params->want_weights)
        sig->out[1].dtype = ATTNCL_F32;
    return attncl__check_dropout(&params->dropout, &sig->in[IN_STEP], sig->axes->of['B']);
}

// A key: its score, and its part of the sums; twice with weights.
static int64_t iterations(const struct op_call *call, int64_t vw, int64_t local)
{
    const struct tensor_desc *in = call->sig.in;
    const int64_t keys = in[IN_K].dim[1] + local, width = ceil_div(in[IN_Q].dim[2], vw) + 4;
    const int64_t sums = ceil_div(in[IN_V].dim[2], vw * local) + 4;

    return (attncl__desc_present(&call->sig.out[1]) ? 2 : 1) * keys *
           (ceil_div(width, local) + sums);
}

attncl_status attncl__additive_attention_launch(struct launcher *l, const struct group_launch *p,
                                                int64_t rows, const struct arg *args, size_t n_args)
{
    const int64_t at_once = attncl__parts_at_once(l, rows, 1);

    for (int64_t first = 0; first < rows; first += at_once) {
        struct arg_list list = {.n = 0};
        arg_list_add(&list, ARGS(arg_i64(first)));
        arg_list_add(&list, args, n_args);
        TRY(attncl__launch(l, &p->spec,
                           grid_1d(rows - first < at_once ? rows - first : at_once, p->local),
                           list.arg, list.n));
    }
    return ATTNCL_OK;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    enum { KEYS = 64 }; // a work-group takes at once
    const struct additive_attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *q = &in[IN_Q], *lens = &in[IN_LENS];
    const int64_t n_queries = q->dim[1], n_keys = in[IN_K].dim[1], value_width = in[IN_V].dim[2];
    struct group_launch p = attncl__group_launch(l->caps, "attention/additive_attention.cl",
                                                 "additive_attention_fwd", KEYS);

    TRY(attncl__check_loops(l->caps, p.spec.kernel, iterations(call, p.vw, (int64_t)p.local)));
    kspec_int(&p.spec, "MASKING", attncl__desc_present(lens) ? MASKING_LENS : 0);
    kspec_int(&p.spec, "WEIGHTS", attncl__desc_present(&call->sig.out[1]));
    kspec_int(&p.spec, "DROPOUT", params->dropout.p > 0);
    return attncl__additive_attention_launch(
        l, &p, q->dim[0] * n_queries,
        ARGS(ROW_ARGS(call, IN_Q), ROW_ARGS(call, IN_K), ROW_ARGS(call, IN_V),
             arg_mem(call->in[IN_W]), arg_mem(call->in[IN_LENS]), arg_i32(lens->rank == 2),
             arg_mem(call->out[0]), arg_mem(call->out[1]), arg_i32(n_queries), arg_i32(n_keys),
             arg_i32(q->dim[2]), arg_i32(value_width), ADDITIVE_MASK(call, &params->dropout),
             arg_local(sizeof(float) * p.vw * (size_t)ceil_div(value_width, p.vw))));
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_additive_attention_bwd,
        .same_params = true,
        .in = {REF_X(IN_Q), REF_X(IN_K), REF_X(IN_V), REF_X(IN_W), REF_X(IN_LENS), REF_X(IN_STEP),
               REF_X(IN_POSITION), REF_DY(0), REF_DY(1)},
        .out = {REF_DX(IN_Q), REF_DX(IN_K), REF_DX(IN_V), REF_DX(IN_W)},
    },
};

// Output 1 is p, [B, T, S], where it is wanted.
const struct op_class attncl__op_additive_attention_fwd = {
    .name = OP_CLASS(additive_attention_fwd),
    .in = OP_IN({"q", F32 | STRIDED, "B T N"}, {"k", F32 | STRIDED, "B S N"},
                {"v", F32 | STRIDED, "B S E"}, {"w", F32, "1? N"},
                {"valid_lens", I32 | OPTIONAL, "B T?"}, {"step", I32 | OPTIONAL, ""},
                {"position", I32 | OPTIONAL, "1"}),
    .out = OP_OUT({"y", F32, "B T E"}, {"weights", F32 | OPTIONAL, "B T S"}),
    .int_axes = "TSNE",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "4BTSN + 2BTSE + 5BTS", // N sums, tanh (as one) and products, the softmax, E products
    .grad = GRAD_RULES(fwd_grad),
};
