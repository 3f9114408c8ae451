// SPDX-License-Identifier: MIT
//
// Layer normalisation over the trailing axes, those of weight and bias.
//
//   y = (x - mean) / sqrt(var + eps) * weight + bias         var = mean((x - mean)^2)
//   y = x / sqrt(mean(x^2) + eps) * weight                   RMS normalisation
//
// All leading axes fold into rows (cl/norm/layer_norm.cl).

#include "op/row_launch.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct layer_norm_fwd_params *params = sig->params;

    REQUIRE(params->eps >= 0, ATTNCL_ERR_ARGUMENT, "eps is %g, must be 0 or more",
            (double)params->eps);
    return attncl__check_last_axes(sig, 0, 1);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const bool rms = call->sig.cls->n_in == 2;
    const struct tensor_desc *x = &call->sig.in[0];
    const struct layer_norm_fwd_params *params = call->sig.params;
    const int64_t normalised = attncl__desc_count(&call->sig.in[1]);
    const int64_t count = attncl__desc_count(x) / normalised;
    struct rows rows = attncl__rows(x);
    if (rows.stride == rows.width) { // no gaps: the normalised axes are one
        rows.width = normalised;
        rows.stride = normalised;
    }
    struct row_problem work = {kspec_begin("norm/layer_norm.cl", "layer_norm_rows_fwd"), count,
                               normalised, 1, attncl__rows_are_float4_aligned(x->start, &rows)};
    kspec_int(&work.spec, "PIECES", rows.width < normalised);
    kspec_int(&work.spec, "RMS", rms);
    const struct row_launch p = attncl__choose_row_tiling(l, &work);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]),
                               arg_mem(call->in[rms ? 1 : 2]), arg_mem(call->out[0]),
                               arg_i64(x->start), arg_i64(rows.stride), arg_i32(rows.width),
                               arg_i32(normalised / rows.width), arg_i64(count),
                               arg_i32(p.rows_per_group), arg_f32(params->eps)));
}

static const struct grad_rule fwd_grad[] = {{.op = OP_layer_norm_bwd,
                                             .same_params = true,
                                             .in = {REF_X(0), REF_X(1), REF_DY(0)},
                                             .out = {REF_DX(0), REF_DX(1), REF_DX(2)}}};

const struct op_class attncl__op_layer_norm_fwd = {
    .name = OP_CLASS(layer_norm_fwd),
    .in = OP_IN({"x", F32 | STRIDED, NULL}, {"weight", F32, "..."}, {"bias", F32, "..."}),
    .out = OP_OUT({"y", F32, "=x"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "8x",
    .grad = GRAD_RULES(fwd_grad),
};

static const struct grad_rule rms_grad[] = {{.op = OP_rms_norm_bwd,
                                             .same_params = true,
                                             .in = {REF_X(0), REF_X(1), REF_DY(0)},
                                             .out = {REF_DX(0), REF_DX(1)}}};

const struct op_class attncl__op_rms_norm_fwd = {
    .name = OP_CLASS(rms_norm_fwd),
    .in = OP_IN({"x", F32 | STRIDED, NULL}, {"weight", F32, "..."}),
    .out = OP_OUT({"y", F32, "=x"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "5x",
    .grad = GRAD_RULES(rms_grad),
};
