// SPDX-License-Identifier: MIT
//
// The gradients of GEMMs.
//
//   linear   p = x W^T + b    dx = d W [+ s]    dW = d^T x [+ s]    db = sum over rows of d     d = dL/dp
//   bmm      y_i = a_i b_i    da_i = dy_i b_i^T             db_i = a_i^T dy_i
//
// No kernel: gradients of GEMMs are GEMMs (gemm/gemm_backend.c) and column sums.
//
// s is the gradient from other uses of x or W (compile/fusion_add_gemm.c).
//
// What the epilogue of a linear map does to p is undone first (activation_bwd.c).

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

static struct column_sum rows_of_bias(const struct op_sig *sig)
{
    const struct tensor_desc *d = &sig->in[0];
    return (struct column_sum){1, attncl__linear_row_count(d), d->dim[d->rank - 1]};
}

static attncl_status bias_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct column_sum s = rows_of_bias(sig);
    *bytes_ret = attncl__column_sum_scratch(&s);
    return ATTNCL_OK;
}

// Sizes and form of a GEMM, no operands.
static struct gemm input_gemm(const struct op_sig *sig)
{
    const struct tensor_desc *weight = &sig->in[1];

    return GEMM_OF(1, attncl__linear_row_count(&sig->in[0]), weight->dim[1], weight->dim[0],
                   .b_dtype = weight->dtype);
}

static struct gemm weight_gemm(const struct op_sig *sig)
{
    const struct tensor_desc *dw = &sig->out[0];

    return GEMM_OF(1, dw->dim[0], dw->dim[1], attncl__linear_row_count(&sig->in[0]),
                   .trans_a = true);
}

static attncl_status input_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct gemm g = input_gemm(sig);
    *bytes_ret = attncl__gemm_scratch(sig->caps, &g);
    return ATTNCL_OK;
}

static attncl_status weight_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct gemm g = weight_gemm(sig);
    *bytes_ret = attncl__gemm_scratch(sig->caps, &g);
    return ATTNCL_OK;
}

static attncl_status append_gemm(struct launcher *l, const struct op_call *call, struct gemm g)
{
    g.scratch = call->scratch;
    g.scratch_bytes = attncl__gemm_scratch(l->caps, &g);
    return attncl__gemm(l, &g);
}

static attncl_status append_linear(struct launcher *l, const struct op_call *call, struct gemm g)
{
    g.a = attncl__linear_rows(call, 0);
    g.b = attncl__linear_rows(call, 1);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    if (attncl__desc_present(&call->sig.in[LINEAR_BWD_ADDEND]))
        g.residual = (struct gemm_matrix){.span = call->in[LINEAR_BWD_ADDEND], .ld = g.n};
    return append_gemm(l, call, g);
}

static attncl_status input_launch(struct launcher *l, const struct op_call *call)
{
    return append_linear(l, call, input_gemm(&call->sig));
}

static attncl_status weight_launch(struct launcher *l, const struct op_call *call)
{
    return append_linear(l, call, weight_gemm(&call->sig));
}

static attncl_status bias_launch(struct launcher *l, const struct op_call *call)
{
    const struct column_sum s = rows_of_bias(&call->sig);
    return attncl__column_sum(l, &s, call->in[0], call->out[0], call->scratch);
}

static struct gemm_matrix entries_of(struct span span, const struct tensor_desc *d)
{
    return (struct gemm_matrix){
        .span = span, .ld = d->dim[2], .batch_stride = d->dim[1] * d->dim[2]};
}

// Input `a` times input `b`, of which the forward op's one is transposed.
static struct gemm bmm_gemm(const struct op_call *call, int a, int b)
{
    const struct tensor_desc *out = &call->sig.out[0], *left = &call->sig.in[a];

    return GEMM_OF(out->dim[0], out->dim[1], out->dim[2], a == 1 ? left->dim[1] : left->dim[2],
                   .a = entries_of(call->in[a], left),
                   .b = entries_of(call->in[b], &call->sig.in[b]),
                   .c = entries_of(call->out[0], out), .trans_a = a == 1, .trans_b = b == 1);
}

static attncl_status bmm_scratch(const struct op_sig *sig, int a, int b, size_t *bytes_ret)
{
    const struct span none[2] = {{NULL}}; // sizes only
    const struct op_call call = {.sig = *sig, .in = none, .out = none};
    const struct gemm g = bmm_gemm(&call, a, b);

    *bytes_ret = attncl__gemm_scratch(sig->caps, &g);
    return ATTNCL_OK;
}

static attncl_status bmm_launch(struct launcher *l, const struct op_call *call, int a, int b)
{
    return append_gemm(l, call, bmm_gemm(call, a, b));
}

static attncl_status bmm_a_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    return bmm_scratch(sig, 0, 1, bytes_ret);
}

static attncl_status bmm_b_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    return bmm_scratch(sig, 1, 0, bytes_ret);
}

static attncl_status bmm_a_launch(struct launcher *l, const struct op_call *call)
{
    return bmm_launch(l, call, 0, 1);
}

static attncl_status bmm_b_launch(struct launcher *l, const struct op_call *call)
{
    return bmm_launch(l, call, 1, 0);
}

const struct op_class attncl__op_linear_bwd_input = {
    .name = OP_CLASS(linear_bwd_input),
    .in = OP_IN({"d", F32 | STRIDED, "... N"}, {"weight", STORED | STRIDED, "N K"},
                {"addend", F32 | OPTIONAL, "... K"}),
    .out = OP_OUT({"dx", F32, "... K"}),
    .scratch = input_scratch,
    .launch = input_launch,
    .flop = "2Kx",
};

const struct op_class attncl__op_linear_bwd_weight = {
    .name = OP_CLASS(linear_bwd_weight),
    .in = OP_IN({"d", F32 | STRIDED, "... N"}, {"x", F32 | STRIDED, "... K"},
                {"addend", F32 | OPTIONAL, "N K"}),
    .out = OP_OUT({"dweight", F32, "N K"}),
    .scratch = weight_scratch,
    .launch = weight_launch,
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
    .scratch = bmm_a_scratch,
    .launch = bmm_a_launch,
    .flop = "2Mx",
};

const struct op_class attncl__op_bmm_bwd_b = {
    .name = OP_CLASS(bmm_bwd_b),
    .in = OP_IN({"dy", F32, "B N P"}, {"a", F32, "B N M"}),
    .out = OP_OUT({"db", F32, "B M P"}),
    .scratch = bmm_b_scratch,
    .launch = bmm_b_launch,
    .flop = "2Mx",
};
