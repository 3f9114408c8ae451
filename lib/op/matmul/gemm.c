// SPDX-License-Identifier: MIT
//
// GEMMs.
//
//   linear   y = act(x W^T + b) * gate + residual      x [..., in], W [out, in] F32, F16, BF16, Q8 or Q4,
//            p = x W^T + b                             b [out], y, p [..., out]
//   bmm      y_i = a_i b_i                             a [B, n, m], b [B, m, p], y [B, n, p]
//
// No kernel: gemm/gemm_backend.c chooses a backend; cl/gemm has the kernels.  fused_linear.c fuses a linear map
// of few rows with a preceding layer norm.
//
// p is an output only for the backward pass, and only if y differs from p.  Recomputing it would
// repeat the GEMM, a third of the backward pass's cost.

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

enum { X = LINEAR_X, WEIGHT, BIAS, GATE, RESIDUAL };
enum { Y, ARGUMENT };

struct gemm_matrix attncl__linear_rows(const struct op_call *call, int input)
{
    const struct tensor_desc *d = &call->sig.in[input];

    if (!attncl__desc_present(d))
        return (struct gemm_matrix){.start = 0};
    return (struct gemm_matrix){call->in[input], d->start, attncl__rows(d).stride, 0};
}

int64_t attncl__linear_row_count(const struct tensor_desc *d)
{
    int64_t count = 1;

    for (int i = 0; i < d->rank - 1; ++i)
        count *= d->dim[i];
    return count;
}

struct gemm attncl__linear_gemm(const struct op_sig *sig)
{
    const struct tensor_desc *weight = &sig->in[WEIGHT];

    return GEMM_OF(1, attncl__linear_row_count(&sig->in[X]), weight->dim[0], weight->dim[1],
                   .b_dtype = weight->dtype, .trans_b = true);
}

attncl_status attncl__gemm_op_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    static const struct span none[GRAD_MAX_IN];
    const struct op_call call = {.sig = *sig, .in = none, .out = none};
    const struct gemm g = sig->cls->gemm(&call);

    *bytes_ret = attncl__gemm_scratch(sig->caps, &g);
    return ATTNCL_OK;
}

attncl_status attncl__gemm_op_launch(struct launcher *l, const struct op_call *call)
{
    struct gemm g = call->sig.cls->gemm(call);

    g.scratch = call->scratch;
    g.scratch_bytes = attncl__gemm_scratch(l->caps, &g);
    return attncl__gemm(l, &g);
}

struct gemm attncl__linear_operands(const struct op_call *call,
                                    const struct linear_fwd_params *params)
{
    struct gemm g = attncl__linear_gemm(&call->sig);

    g.a = attncl__linear_rows(call, X);
    g.b = attncl__linear_rows(call, WEIGHT);
    g.c = (struct gemm_matrix){.span = call->out[0], .ld = g.n};
    g.bias_kind = attncl__desc_present(&call->sig.in[BIAS]) ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE;
    g.bias = call->in[BIAS];
    g.activation = (attncl_activation)params->activation;
    g.gate = attncl__linear_rows(call, GATE);
    g.residual = attncl__linear_rows(call, RESIDUAL);
    return g;
}

static struct gemm linear_gemm(const struct op_call *call)
{
    struct gemm g = attncl__linear_operands(call, call->sig.params);

    if (attncl__desc_present(&call->sig.out[ARGUMENT]))
        g.saved_for_backward = call->out[ARGUMENT];
    return g;
}

static bool changes_argument(const struct op_sig *sig)
{
    const struct linear_fwd_params *params = sig->params;
    return params->activation != ATTNCL_IDENTITY || attncl__desc_present(&sig->in[GATE]);
}

// ReLU's slope follows from y if y is only the ReLU, so p is not saved.
static bool is_relu(const struct op_sig *sig)
{
    const struct linear_fwd_params *params = sig->params;
    return params->activation == ATTNCL_RELU && !attncl__desc_present(&sig->in[GATE]) &&
           !attncl__desc_present(&sig->in[RESIDUAL]);
}

static bool needs_argument(const struct op_sig *sig)
{
    return changes_argument(sig) && !is_relu(sig);
}

static bool adds_only(const struct op_sig *sig)
{
    return !changes_argument(sig);
}

// REF_TEMP(0): the gradient of p.
static const struct grad_rule linear_grad[] = {
    {.op = OP_linear_bwd_epilogue,
     .same_params = true,
     .in = {REF_Y(ARGUMENT), REF_DY(Y), REF_X(GATE)},
     .out = {REF_TEMP(0), REF_DX(GATE)},
     .when = needs_argument},
    {.op = OP_linear_bwd_epilogue,
     .same_params = true,
     .in = {REF_Y(Y), REF_DY(Y)},
     .out = {REF_TEMP(0)},
     .when = is_relu},
    {.in = {REF_DY(Y)}, .out = {REF_TEMP(0)}, .when = adds_only},
    {.op = OP_linear_bwd_input, .in = {REF_TEMP(0), REF_X(WEIGHT)}, .out = {REF_DX(X)}},
    {.op = OP_linear_bwd_weight, .in = {REF_TEMP(0), REF_X(X)}, .out = {REF_DX(WEIGHT)}},
    {.op = OP_linear_bwd_bias, .in = {REF_TEMP(0)}, .out = {REF_DX(BIAS)}},
    {.in = {REF_DY(Y)}, .out = {REF_DX(RESIDUAL)}},
};

const struct op_class attncl__op_linear_fwd = {
    .name = OP_CLASS(linear_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "... K"}, {"weight", STORED | OR_QUANTISED | STRIDED, "N K"},
                {"bias", F32 | OPTIONAL, "N"}, {"gate", F32 | STRIDED | OPTIONAL, "... N"},
                {"residual", F32 | STRIDED | OPTIONAL, "... N"}),
    .out = OP_OUT({"y", F32, "... N"}, {"argument", F32 | FOR_BACKWARD, "... N"}),
    .infer = attncl__check_activation,
    GEMM_OP(linear_gemm),
    .flop = "2Ky",
    .grad = GRAD_RULES(linear_grad),
};

static struct gemm_matrix entry_matrices(struct span span, const struct tensor_desc *d)
{
    return (struct gemm_matrix){
        .span = span, .ld = d->dim[2], .batch_stride = d->dim[1] * d->dim[2]};
}

struct gemm attncl__bmm_gemm(const struct op_call *call, int a, int b, enum bmm_form form)
{
    const struct tensor_desc *out = &call->sig.out[0], *left = &call->sig.in[a];

    return GEMM_OF(out->dim[0], out->dim[1], out->dim[2], left->dim[form == BMM_TN ? 1 : 2],
                   .a = entry_matrices(call->in[a], left),
                   .b = entry_matrices(call->in[b], &call->sig.in[b]),
                   .c = entry_matrices(call->out[0], out), .trans_a = form == BMM_TN,
                   .trans_b = form == BMM_NT);
}

static struct gemm bmm_gemm(const struct op_call *call)
{
    return attncl__bmm_gemm(call, 0, 1, BMM_NN);
}

static const struct grad_rule bmm_grad[] = {
    {.op = OP_bmm_bwd_a, .in = {REF_DY(0), REF_X(1)}, .out = {REF_DX(0)}},
    {.op = OP_bmm_bwd_b, .in = {REF_DY(0), REF_X(0)}, .out = {REF_DX(1)}},
};

const struct op_class attncl__op_bmm_fwd = {
    .name = OP_CLASS(bmm_fwd),
    .in = OP_IN({"a", F32, "B N M"}, {"b", F32, "B M P"}),
    .out = OP_OUT({"y", F32, "B N P"}),
    GEMM_OP(bmm_gemm),
    .flop = "2My",
    .grad = GRAD_RULES(bmm_grad),
};
