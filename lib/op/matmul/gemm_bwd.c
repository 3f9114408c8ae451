// SPDX-License-Identifier: MIT
//
// The gradients of GEMMs.
//
//   linear   p = x W^T + b    dx = d W [+ s]    dW = d^T x [+ s]    db = sum over rows of d     d = dL/dp
//   bmm      y_i = a_i b_i    da_i = dy_i b_i^T             db_i = a_i^T dy_i
//
// No kernel: gradients of GEMMs are GEMMs (gemm/gemm_backend.c) and column sums.  s is the gradient from other
// uses of x or W (compile/fusion_add_gemm.c).  activation_bwd.c backpropagates the epilogue first.

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

static struct column_sum bias_column_sum(const struct op_sig *sig)
{
    const struct tensor_desc *d = &sig->in[0];
    return (struct column_sum){1, attncl__linear_row_count(d), d->dim[d->rank - 1]};
}

static attncl_status bias_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct column_sum s = bias_column_sum(sig);
    *bytes_ret = attncl__column_sum_scratch(&s);
    return ATTNCL_OK;
}

// Adds the operands: the product of the first two inputs, plus the third.
static struct gemm add_operands(const struct op_call *call, struct gemm g)
{
    g.a = attncl__linear_rows(call, LINEAR_BWD_D);
    g.b = attncl__linear_rows(call, LINEAR_BWD_FACTOR);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    if (attncl__desc_present(&call->sig.in[LINEAR_BWD_ADDEND]))
        g.residual = (struct gemm_matrix){.span = call->in[LINEAR_BWD_ADDEND], .ld = g.n};
    return g;
}

static struct gemm input_gemm(const struct op_call *call)
{
    const struct tensor_desc *in = call->sig.in, *weight = &in[1];

    return add_operands(call, GEMM_OF(1, attncl__linear_row_count(&in[0]), weight->dim[1],
                                      weight->dim[0], .b_dtype = weight->dtype));
}

static struct gemm weight_gemm(const struct op_call *call)
{
    const struct tensor_desc *dw = &call->sig.out[0];

    return add_operands(call, GEMM_OF(1, dw->dim[0], dw->dim[1],
                                      attncl__linear_row_count(&call->sig.in[0]), .trans_a = true));
}

static attncl_status bias_launch(struct launcher *l, const struct op_call *call)
{
    const struct column_sum s = bias_column_sum(&call->sig);
    return attncl__launch_column_sum(l, &s, call->in[0], call->out[0], call->scratch);
}

static struct gemm bmm_a_gemm(const struct op_call *call)
{
    return attncl__bmm_gemm(call, 0, 1, BMM_NT);
}

static struct gemm bmm_b_gemm(const struct op_call *call)
{
    return attncl__bmm_gemm(call, 1, 0, BMM_TN);
}

const struct op_class attncl__op_linear_bwd_input = {
    .name = OP_CLASS(linear_bwd_input),
    .in = OP_IN({"d", F32 | STRIDED, "... N"}, {"weight", STORED | STRIDED, "N K"},
                {"addend", F32 | OPTIONAL, "... K"}),
    .out = OP_OUT({"dx", F32, "... K"}),
    GEMM_OP(input_gemm),
    .flop = "2Kx",
};

const struct op_class attncl__op_linear_bwd_weight = {
    .name = OP_CLASS(linear_bwd_weight),
    .in = OP_IN({"d", F32 | STRIDED, "... N"}, {"x", F32 | STRIDED, "... K"},
                {"addend", F32 | OPTIONAL, "N K"}),
    .out = OP_OUT({"dweight", F32, "N K"}),
    GEMM_OP(weight_gemm),
    .flop = "2Kx",
};

const struct op_class attncl__op_linear_bwd_bias = {
    .name = OP_CLASS(linear_bwd_bias),
    .in = OP_IN({"d", F32, "... N"}),
    .out = OP_OUT({"dbias", F32, "N"}),
    .scratch = bias_scratch,
    .launch = bias_launch,
};

const struct op_class attncl__op_bmm_bwd_a = {
    .name = OP_CLASS(bmm_bwd_a),
    .in = OP_IN({"dy", F32, "B N P"}, {"b", F32, "B M P"}),
    .out = OP_OUT({"da", F32, "B N M"}),
    GEMM_OP(bmm_a_gemm),
    .flop = "2Mx",
};

const struct op_class attncl__op_bmm_bwd_b = {
    .name = OP_CLASS(bmm_bwd_b),
    .in = OP_IN({"dy", F32, "B N P"}, {"a", F32, "B N M"}),
    .out = OP_OUT({"db", F32, "B M P"}),
    GEMM_OP(bmm_b_gemm),
    .flop = "2Mx",
};
