// SPDX-License-Identifier: MIT
//
// Nadaraya-Watson kernel regression and its gradients (cl/attention/attention_pooling.cl, which has the formulas).
//
// The Gaussian is a softmax of -u^2 / (2 sigma^2), shifted by its maximum, so no key is too far.
// With the other kernels, w and y are 0 where no key is in the support.

#include <math.h>

#include "op/row_launch.h"

enum { IN_KEYS, IN_VALUES, IN_QUERIES, IN_G, IN_C };
enum { OUT_DX, OUT_DY, OUT_DZ };
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

static struct item_launch choose_pass(const struct launcher *l, const struct op_call *call,
                                      const char *kernel, int64_t count)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    struct item_launch pass =
        attncl__item_launch(l->caps, "attention/attention_pooling.cl", kernel, count);

    kspec_int(&pass.spec, "KIND", p->kind);
    kspec_int(&pass.spec, "WEIGHTS", p->want_weights != 0);
    return pass;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    const int64_t n = call->sig.in[IN_KEYS].dim[0], m = call->sig.in[IN_QUERIES].dim[0];
    const struct item_launch pass = choose_pass(l, call, "attention_pooling_columns_fwd", m);

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

// Output 1 is w, if wanted.
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

// -- backward

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 3 * sizeof(float) * (size_t)sig->in[IN_QUERIES].dim[0];
    return ATTNCL_OK;
}

// g is the gradient of y, c the gradient of w if w is an output.
#define INPUTS(call)                                                                               \
    arg_mem((call)->in[IN_KEYS]), arg_mem((call)->in[IN_VALUES]), arg_mem((call)->in[IN_QUERIES]), \
        arg_mem((call)->in[IN_G]), arg_mem((call)->in[IN_C]),                                      \
        arg_i32(attncl__desc_present(&(call)->sig.in[IN_C])), arg_mem((call)->scratch)

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct attention_pooling_fwd_params *p = call->sig.params;
    const int64_t n = call->sig.in[IN_KEYS].dim[0], m = call->sig.in[IN_QUERIES].dim[0];
    const float inverse = (float)(1 / fabs((double)p->sigma));
    const struct item_launch columns = choose_pass(l, call, "attention_pooling_bwd_columns", m);
    const struct item_launch rows = choose_pass(l, call, "attention_pooling_bwd_rows", n);

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
