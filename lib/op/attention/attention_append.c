// SPDX-License-Identifier: MIT
//
// Rows behind those of a cache, for a prompt behind tokens that were taken (cl/attention/attention_append.cl).
//
//   state[p + t, b] = x[t, b], p + t < S, rounded to the state's type: F32, F16, BF16 or, as U8, rows in 8 bits (q8_row.h)
//   y[j, b] = state[j, b] as floats, j < p + T; later rows are undefined.  Absent for a state of F32
//
// p >= 0, the position, is read on the device.

#include "op/attention/attention_split.h"
#include "op/attention/q8_row.h"
#include "op/row_launch.h"

enum { IN_X, IN_POSITION, IN_STATE };

// Of a row in 8 bits, each with a scale; else a row is one.
static int64_t count_heads(const struct op_sig *sig)
{
    const struct tensor_desc *state = &sig->in[IN_STATE];
    return state->dtype == ATTNCL_U8 ? (state->dim[2] - attncl__q8_scales(sig->in[IN_X].dim[2])) / 4
                                     : 1;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const int64_t *of = sig->axes->of, heads = count_heads(sig);
    const bool is_q8 = sig->in[IN_STATE].dtype == ATTNCL_U8;

    REQUIRE(is_q8 ? heads > 0 && of['K'] % heads == 0 &&
                        of['R'] == attncl__q8_row_bytes(of['K'], heads)
                  : of['R'] == of['K'],
            ATTNCL_ERR_SHAPE, "state has R = %" PRId64 ", which is no row of K = %" PRId64 " %s",
            of['R'], of['K'], is_q8 ? "channels in 8 bits" : "channels");
    if (sig->in[IN_STATE].dtype != ATTNCL_F32)
        sig->out[0].dtype = ATTNCL_F32;
    return attncl__check_product(sig, "SB", INT32_MAX);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[IN_X], *state = &call->sig.in[IN_STATE];
    const bool reads = attncl__desc_present(&call->sig.out[0]);
    const int64_t heads = count_heads(&call->sig), width = x->dim[2] / heads;
    struct row_launch p =
        attncl__row_launch(l->caps, "attention/attention_append.cl", "attention_append_fwd",
                           (reads ? state : x)->dim[0] * x->dim[1] * heads, width);

    if (attncl__desc_count(x) == 0)
        return ATTNCL_OK;
    attncl__set_cache_type(&p.spec, state->dtype);
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(ROW_ARGS(call, IN_X), arg_mem(call->in[IN_POSITION]),
                               arg_mem(call->in[IN_STATE]), arg_mem(call->out[0]),
                               arg_i32(x->dim[0]), arg_i32(x->dim[1]), arg_i32(heads),
                               arg_i32(width), arg_i32(state->dim[0]), arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_attention_append_fwd = {
    .name = OP_CLASS(attention_append_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "T B K"}, {"position", I32, "1"},
                {"state", STORED | OR_U8 | STATE, "S B R"}),
    .out = OP_OUT({"y", F32 | OPTIONAL, "S B K"}),
    .int_axes = "TBKS",
    .filled_axes = "TKS",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .moved = {[IN_STATE] = "x"},
};
