// SPDX-License-Identifier: MIT
//
// The spatial gate of gMLP: positions are mixed by a learned matrix, channel by channel.
//
//   W'[i, j]   = weight[i, j], 0 where mask[i, j] = 0 or, causal, j > i         i, j < T <= n
//   y[i, b, c] = z1[i, b, c] * (sum_j W'[i, j] u[j, b, c] + bias[i])
//
// For the gradients the second factor is saved, as [B, T, C].
//
// No kernel: one GEMM per batch entry, with row bias and gate z1 in its epilogue (gemm/gemm.h).  With a mask, a
// kernel of cl/matmul/spatial_gate_bwd.cl first writes W' to the scratch.

#include "base/ckd.h"
#include "op/matmul/matmul.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    return attncl__check_at_most(sig, 'T', 'N');
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const size_t length = (size_t)sig->in[2].dim[0];
    size_t count;

    *bytes_ret = 0;
    if (attncl__desc_present(&sig->in[4]))
        REQUIRE(ckd_mul_size(length, length, &count) &&
                    ckd_mul_size(count, sizeof(float), bytes_ret),
                ATTNCL_ERR_DEVICE_MEMORY, "a mask for T = %zu does not fit", length);
    return ATTNCL_OK;
}

// *ret: the matrix to multiply by, the weight or the masked weight in the scratch.
static attncl_status mask_weight(struct launcher *l, const struct op_call *call,
                                 struct gemm_matrix *ret)
{
    const int64_t n = call->sig.in[0].dim[1], length = call->sig.in[2].dim[0];

    const struct gemm_matrix weight = {.span = call->in[0], .ld = n};

    *ret = weight;
    if (!attncl__desc_present(&call->sig.in[4]))
        return ATTNCL_OK;
    *ret = (struct gemm_matrix){.span = call->scratch, .ld = length};
    return attncl__spatial_gate_launch_mask(l, call, 4, length, weight, call->scratch, length);
}

// A [T, B, C] value as one [T, C] matrix per batch entry.
static struct gemm_matrix entry_matrices(struct span span, const struct tensor_desc *d)
{
    return (struct gemm_matrix){span, d->start, d->stride[0], d->stride[1]};
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct spatial_gate_fwd_params *params = call->sig.params;
    const struct tensor_desc *u = &call->sig.in[2];
    struct gemm g =
        GEMM_OF(u->dim[1], u->dim[0], u->dim[2], u->dim[0], .b = entry_matrices(call->in[2], u),
                .c = entry_matrices(call->out[0], &call->sig.out[0]), .causal = params->causal != 0,
                .bias_kind = GEMM_BIAS_ROW, .bias = call->in[1],
                .gate = entry_matrices(call->in[3], &call->sig.in[3]));

    if (attncl__desc_present(&call->sig.out[1]))
        g.saved_for_backward = call->out[1];
    TRY(mask_weight(l, call, &g.a));
    return attncl__gemm(l, &g);
}

// REF_TEMP(0): the gradient of the second factor.
static const struct grad_rule fwd_grad[] = {
    {.op = OP_spatial_gate_bwd_gate,
     .in = {REF_Y(1), REF_X(3), REF_DY(0)},
     .out = {REF_DX(3), REF_TEMP(0)}},
    {.op = OP_spatial_gate_bwd_weight,
     .same_params = true,
     .in = {REF_X(0), REF_TEMP(0), REF_X(2), REF_X(4)},
     .out = {REF_DX(0)}},
    {.op = OP_spatial_gate_bwd_bias, .in = {REF_X(1), REF_TEMP(0)}, .out = {REF_DX(1)}},
    {.op = OP_spatial_gate_bwd_input,
     .same_params = true,
     .in = {REF_X(0), REF_TEMP(0), REF_X(4)},
     .out = {REF_DX(2)}},
};

const struct op_class attncl__op_spatial_gate_fwd = {
    .name = OP_CLASS(spatial_gate_fwd),
    .in = OP_IN({"weight", F32, "N N"}, {"bias", F32, "N"}, {"u", F32 | STRIDED, "T B C"},
                {"z1", F32 | STRIDED, "T B C"}, {"mask", U8 | OPTIONAL, "T|1 T 1"}),
    .out = OP_OUT({"y", F32, "T B C"}, {"s", F32 | FOR_BACKWARD, "B T C"}),
    .int_axes = "T",
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "2pBC",
    .pairs = attncl__spatial_gate_pairs,
    .moved = {[0] = "p", [1] = "T"},
    .grad = GRAD_RULES(fwd_grad),
};
