// SPDX-License-Identifier: MIT
//
// The gradient of cross entropy.
//
//   dlogits_rv = (softmax(logits_r)_v - (1 - e) [v = target_r] - e / V) dy_r s
//
// and 0 where target_r = pad; e is the label smoothing.  dy has one element, or one per row.  s is 1
// or, for the mean, 1 / the number of rows that are not padding, which one work-group counts first.
// No kernel: uses cl/train/cross_entropy.cl, one program for losses and gradients.

#include "attncl/kinds.h"
#include "op/row_launch.h"

static attncl_status bwd_infer(struct op_sig *sig)
{
    const struct cross_entropy_fwd_params *params = sig->params;
    return attncl__check_shape(sig, 2, params->reduction == ATTNCL_REDUCE_NONE ? "..." : "");
}

// The divisor of the mean.
static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    (void)sig;
    *bytes_ret = sizeof(float);
    return ATTNCL_OK;
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct cross_entropy_fwd_params *params = call->sig.params;
    const bool has_pad = params->pad >= 0 && params->pad <= INT32_MAX;
    const bool mean = params->reduction == ATTNCL_REDUCE_MEAN;
    const struct rows rows = attncl__rows(&call->sig.in[0]);
    const struct row_launch p = attncl__choose_row_tiling(
        l, &(struct row_problem){kspec_begin("train/cross_entropy.cl", "cross_entropy_bwd_rows"),
                                 rows.count, rows.width, 1,
                                 attncl__rows_are_float4_aligned(0, &rows)});
    struct kspec count = p.spec;

    count.kernel = "cross_entropy_bwd_count";
    if (mean)
        TRY(attncl__launch(l, &count, grid_1d(1, p.grid.local[0]),
                           ARGS(arg_mem(call->in[1]), arg_mem(call->scratch), arg_i64(rows.count),
                                arg_i32(has_pad ? params->pad : 0), arg_i32(has_pad))));
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->scratch), arg_mem(call->out[0]), arg_i32(rows.width),
                               arg_i64(rows.count), arg_i32(p.rows_per_group),
                               arg_i32(has_pad ? params->pad : 0), arg_i32(has_pad),
                               arg_i32(params->reduction == ATTNCL_REDUCE_NONE), arg_i32(mean),
                               arg_f32((float)(1 - params->smoothing)),
                               arg_f32((float)(params->smoothing / (double)rows.width))));
}

const struct op_class attncl__op_cross_entropy_bwd = {
    .name = OP_CLASS(cross_entropy_bwd),
    .in = OP_IN({"logits", F32, "... V"}, {"targets", I32, "..."}, {"dy", F32, NULL}),
    .out = OP_OUT({"dlogits", F32, "... V"}),
    .int_axes = "V",
    .infer = bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "5x",
};
