// SPDX-License-Identifier: MIT
//
// Nadaraya-Watson kernel regression (cl/attention/attention_pooling.cl).
//
//   w_ij = K(x_i - z_j) / sum_i K(x_i - z_j),   y_j = sum_i w_ij y_i
//
// The Gaussian is a softmax of -u^2 / (2 sigma^2), shifted by its maximum: no key is too
// far.  Where no key is in the support of another kernel, w and y are 0.

#include <math.h>

#include "op/row_launch.h"

enum { IN_KEYS, IN_VALUES, IN_QUERIES };
enum { KERNELS = 4, GAUSSIAN = 0 };

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct attention_pooling_fwd_params *p = sig->params;

    REQUIRE(p->kind >= 0 && p->kind < KERNELS, ATTNCL_ERR_ARGUMENT,
            "pooling kernel is %d, expected 0 to %d", p->kind, KERNELS - 1);
    REQUIRE(p->kind != GAUSSIAN || (isfinite(p->sigma) && p->sigma != 0), ATTNCL_ERR_ARGUMENT,
            "sigma is %g, expected a finite number but 0", (double)p->sigma);
    if (p->want_weights)
        sig->out[1].dtype = ATTNCL_F32;
    return ATTNCL_OK;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    const int64_t n = call->sig.in[IN_KEYS].dim[0], m = call->sig.in[IN_QUERIES].dim[0];
    struct item_launch pass = attncl__item_launch(l->caps, "attention/attention_pooling.cl",
                                                  "attention_pooling_columns_fwd", m, true);
    kspec_int(&pass.spec, "KIND", p->kind);
    kspec_int(&pass.spec, "WEIGHTS", p->want_weights != 0);

    TRY(attncl__check_loops(l->caps, pass.spec.kernel, (p->want_weights ? 4 : 3) * n + 4));
    return attncl__launch(l, &pass.spec, pass.grid,
                          ARGS(arg_mem(call->in[IN_KEYS]), arg_mem(call->in[IN_VALUES]),
                               arg_mem(call->in[IN_QUERIES]), arg_mem(call->out[0]),
                               arg_mem(call->out[1]), arg_i32(n), arg_i32(m),
                               arg_f32((float)(1 / fabs((double)p->sigma)))));
}

static const struct grad_rule fwd_grad[] = {
    {
        .op = OP_attention_pooling_bwd,
        .same_params = true,
        .in = {REF_X(IN_KEYS), REF_X(IN_VALUES), REF_X(IN_QUERIES), REF_DY(0), REF_DY(1)},
        .out = {REF_DX(IN_KEYS), REF_DX(IN_VALUES), REF_DX(IN_QUERIES)},
    },
};

// Output 1 is w, where it is wanted.
const struct op_class attncl__op_attention_pooling_fwd = {
    .name = OP_CLASS(attention_pooling_fwd),
    .in = OP_IN({"x_train", F32, "N"}, {"y_train", F32, "N"}, {"x_val", F32, "M"}),
    .out = OP_OUT({"y", F32, "M"}, {"weights", F32 | OPTIONAL, "N M"}),
    .int_axes = "NM",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "24NM + 20z", // the kernel, twice where weights are stored, and the sums
    .grad = GRAD_RULES(fwd_grad),
};
