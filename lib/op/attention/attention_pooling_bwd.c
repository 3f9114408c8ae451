// SPDX-License-Identifier: MIT
//
// Gradients of Nadaraya-Watson kernel regression (cl/attention/attention_pooling_bwd.cl).
//
//   w_ij = K(u_ij) / S_j,   u_ij = x_i - z_j,   S_j = sum_i K(u_ij)
//   r_ij = g_j y_i + c_ij - sum_i w_ij (g_j y_i + c_ij),   du_ij = r_ij K'(u_ij) / S_j
//   dx_i = sum_j du_ij,   dz_j = -sum_i du_ij,   dy_i = sum_j w_ij g_j
//
// g is the gradient of y, c that of w where it is asked for.

#include <math.h>

#include "op/row_launch.h"

enum { IN_KEYS, IN_VALUES, IN_QUERIES, IN_G, IN_C };
enum { OUT_DX, OUT_DY, OUT_DZ };

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 3 * sizeof(float) * (size_t)sig->in[IN_QUERIES].dim[0];
    return ATTNCL_OK;
}

static struct item_launch pass_of(const struct launcher *l, const struct op_call *call,
                                  const char *kernel, int64_t count)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    struct item_launch pass =
        attncl__item_launch(l->caps, "attention/attention_pooling_bwd.cl", kernel, count, true);

    kspec_int(&pass.spec, "KIND", p->kind);
    return pass;
}

#define INPUTS(call)                                                                               \
    arg_mem((call)->in[IN_KEYS]), arg_mem((call)->in[IN_VALUES]), arg_mem((call)->in[IN_QUERIES]), \
        arg_mem((call)->in[IN_G]), arg_mem((call)->in[IN_C]),                                      \
        arg_i32(attncl__desc_present(&(call)->sig.in[IN_C])), arg_mem((call)->scratch)

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    const int64_t n = call->sig.in[IN_KEYS].dim[0], m = call->sig.in[IN_QUERIES].dim[0];
    const float inverse = (float)(1 / fabs((double)p->sigma));
    const struct item_launch columns = pass_of(l, call, "attention_pooling_bwd_columns", m);
    const struct item_launch rows = pass_of(l, call, "attention_pooling_bwd_rows", n);

    TRY(attncl__check_loops(l->caps, "attention_pooling_bwd", 3 * n + (int64_t)20 * m));
    TRY(attncl__launch(
        l, &columns.spec, columns.grid,
        ARGS(INPUTS(call), arg_mem(call->out[OUT_DZ]), arg_i32(n), arg_i32(m), arg_f32(inverse))));
    return attncl__launch(l, &rows.spec, rows.grid,
                          ARGS(INPUTS(call), arg_mem(call->out[OUT_DX]), arg_mem(call->out[OUT_DY]),
                               arg_i32(n), arg_i32(m), arg_f32(inverse)));
}

const struct op_class attncl__op_attention_pooling_bwd = {
    .name = OP_CLASS(attention_pooling_bwd),
    .in = OP_IN({"x_train", F32, "N"}, {"y_train", F32, "N"}, {"x_val", F32, "M"}, {"dy", F32, "M"},
                {"dweights", F32 | OPTIONAL, "N M"}),
    .out = OP_OUT({"dx_train", F32, "N"}, {"dy_train", F32, "N"}, {"dx_val", F32, "M"}),
    .int_axes = "NM",
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "90NM",
};
