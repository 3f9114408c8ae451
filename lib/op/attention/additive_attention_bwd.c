// SPDX-License-Identifier: MIT
//
// Gradients of additive attention; [B, T, S, N] is never formed, p and its gradient [B, T, S] are.
//
//   s_ij = w . t_ij,   t_ij = tanh(q_i + k_j),   p_i = softmax(s_i)
//   ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij),   dp_ij = m_ij g_i . v_j + c_ij
//   dq_i = sum_j ds_ij w (1 - t_ij^2)    dk_j = sum_i of the same    dw = sum_ij ds_ij t_ij
//   dv_j = sum_i m_ij p_ij g_i
//
// g is the gradient of y, c that of the weights where they are asked for, m the mask of dropout.  Kernels:
// cl/attention/additive_attention_bwd.cl.

#include "op/attention/additive_attention.h"

enum { IN_G = N_ADDITIVE_INPUTS, IN_C };
enum { OUT_DQ, OUT_DK, OUT_DV, OUT_DW };

enum { MASKING_LENS = 2 }; // of cl/attention/attention.clh

// In the scratch, in floats: m p, ds, each query's share of dw.
struct places {
    int64_t ds_at, parts_at, floats;
};

static struct places places_of(const struct op_sig *sig)
{
    const struct tensor_desc *q = &sig->in[IN_Q];
    const int64_t rows = q->dim[0] * q->dim[1], pairs = rows * sig->in[IN_K].dim[1];
    return (struct places){pairs, 2 * pairs, 2 * pairs + rows * q->dim[2]};
}

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = sizeof(float) * (size_t)places_of(sig).floats;
    return ATTNCL_OK;
}

// A pass of work-groups that share `width` numbers.
static struct group_launch pass_of(const struct launcher *l, const struct op_call *call,
                                   const char *kernel, int64_t width)
{
    struct group_launch p =
        attncl__group_launch(l->caps, "attention/additive_attention_bwd.cl", kernel, width);

    const struct additive_attention_bwd_params *params = call->sig.params;
    kspec_int(&p.spec, "MASKING", attncl__desc_present(&call->sig.in[IN_LENS]) ? MASKING_LENS : 0);
    kspec_int(&p.spec, "DROPOUT", params->attention.dropout.p > 0);
    return p;
}

static attncl_status launch_rows(struct launcher *l, const struct op_call *call,
                                 const struct places *x)
{
    const struct additive_attention_bwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *q = &in[IN_Q];
    const struct group_launch p = pass_of(l, call, "additive_attention_bwd_rows", in[IN_K].dim[1]);

    return attncl__additive_attention_launch(
        l, &p, q->dim[0] * q->dim[1],
        ARGS(arg_mem(call->in[IN_Q]), arg_mem(call->in[IN_K]), arg_mem(call->in[IN_V]),
             arg_mem(call->in[IN_W]), arg_mem(call->in[IN_LENS]), arg_i32(in[IN_LENS].rank == 2),
             arg_mem(call->in[IN_G]), arg_mem(call->in[IN_C]),
             arg_i32(attncl__desc_present(&in[IN_C])), arg_mem(call->scratch), arg_i64(x->ds_at),
             arg_i32(q->dim[1]), arg_i32(in[IN_K].dim[1]), arg_i32(q->dim[2]),
             arg_i32(in[IN_V].dim[2]), ADDITIVE_MASK(call, &params->attention.dropout)));
}

static attncl_status launch_queries(struct launcher *l, const struct op_call *call,
                                    const struct places *x)
{
    const struct tensor_desc *in = call->sig.in, *q = &in[IN_Q];
    const struct group_launch p = pass_of(l, call, "additive_attention_bwd_queries", q->dim[2]);

    return attncl__additive_attention_launch(l, &p, q->dim[0] * q->dim[1],
                                             ARGS(arg_mem(call->in[IN_Q]), arg_mem(call->in[IN_K]),
                                                  arg_mem(call->in[IN_W]), arg_mem(call->scratch),
                                                  arg_i64(x->ds_at), arg_i64(x->parts_at),
                                                  arg_mem(call->out[OUT_DQ]), arg_i32(q->dim[1]),
                                                  arg_i32(in[IN_K].dim[1]), arg_i32(q->dim[2])));
}

static attncl_status launch_keys(struct launcher *l, const struct op_call *call,
                                 const struct places *x)
{
    const struct tensor_desc *in = call->sig.in, *q = &in[IN_Q], *k = &in[IN_K];
    const struct group_launch p = pass_of(l, call, "additive_attention_bwd_keys", q->dim[2]);

    return attncl__additive_attention_launch(
        l, &p, k->dim[0] * k->dim[1],
        ARGS(arg_mem(call->in[IN_Q]), arg_mem(call->in[IN_K]), arg_mem(call->in[IN_W]),
             arg_mem(call->in[IN_G]), arg_mem(call->scratch), arg_i64(x->ds_at),
             arg_mem(call->out[OUT_DK]), arg_mem(call->out[OUT_DV]), arg_i32(q->dim[1]),
             arg_i32(k->dim[1]), arg_i32(q->dim[2]), arg_i32(in[IN_V].dim[2])));
}

static attncl_status launch_sum(struct launcher *l, const struct op_call *call,
                                const struct places *x)
{
    const struct tensor_desc *q = &call->sig.in[IN_Q];
    const struct group_launch p = pass_of(l, call, "additive_attention_bwd_sum", q->dim[2]);
    const int64_t columns = (int64_t)p.local * p.vw;

    return attncl__launch(l, &p.spec, grid_1d(ceil_div(q->dim[2], columns), p.local),
                          ARGS(arg_mem(call->scratch), arg_i64(x->parts_at),
                               arg_i64(q->dim[0] * q->dim[1]), arg_mem(call->out[OUT_DW]),
                               arg_i32(q->dim[2])));
}

// An upper bound for every pass, of one work-item that has all of a row.
static int64_t iterations(const struct op_sig *sig)
{
    const struct tensor_desc *q = &sig->in[IN_Q], *v = &sig->in[IN_V];
    const int64_t width = q->dim[2] + v->dim[2] + 8, rows = q->dim[0] * q->dim[1];
    const int64_t longest = v->dim[1] > q->dim[1] ? v->dim[1] : q->dim[1];
    const int64_t row = longest * width;

    return row > rows ? row : rows;
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct places x = places_of(&call->sig);

    TRY(attncl__check_loops(l->caps, "additive_attention_bwd", iterations(&call->sig)));
    TRY(launch_rows(l, call, &x));
    TRY(launch_queries(l, call, &x));
    TRY(launch_keys(l, call, &x));
    return launch_sum(l, call, &x);
}

const struct op_class attncl__op_additive_attention_bwd = {
    .name = OP_CLASS(additive_attention_bwd),
    .in = OP_IN({"q", F32, "B T N"}, {"k", F32, "B S N"}, {"v", F32, "B S E"}, {"w", F32, "1? N"},
                {"valid_lens", I32 | OPTIONAL, "B T?"}, {"step", I32 | OPTIONAL, ""},
                {"position", I32 | OPTIONAL, "1"}, {"dy", F32, "B T E"},
                {"dweights", F32 | OPTIONAL, "B T S"}),
    .out =
        OP_OUT({"dq", F32, "B T N"}, {"dk", F32, "B S N"}, {"dv", F32, "B S E"}, {"dw", F32, "=w"}),
    .int_axes = "TSNE",
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "15BTSN + 4BTSE + 10BTS", // three tanh and products of N, two of E, the softmax
};
