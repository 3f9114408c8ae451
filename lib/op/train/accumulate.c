// SPDX-License-Identifier: MIT
//
// into = keep into + gain x, in place.  No kernel: uses cl/train/update.cl.
//
//   keep = gain = 1           sums of gradients over batches
//   keep = d, gain = 1 - d    an exponential moving average
//   keep = 0, no x            zeros
//
// If keep is 0, `into` is not read.  If the scalar `guard` is NaN, `into` does not change.

#include "op/row_launch.h"

enum { IN_INTO, IN_VALUE, IN_GUARD };

static attncl_status accumulate_launch(struct launcher *l, const struct op_call *call)
{
    const struct accumulate_fwd_params *p = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.in[IN_INTO]);
    const struct elementwise_launch config =
        attncl__elementwise_launch(l->caps, "train/update.cl", "update_accumulate_fwd", count);

    return attncl__launch_part(l, &config.spec, config.grid,
                               ARGS(arg_mem(call->in[IN_GUARD]),
                                    arg_i32(attncl__desc_present(&call->sig.in[IN_VALUE])),
                                    arg_i32(attncl__desc_present(&call->sig.in[IN_GUARD])),
                                    arg_f32((float)p->keep), arg_f32((float)p->gain)),
                               ARGS(arg_written(call->in[IN_INTO]), arg_mem(call->in[IN_VALUE]),
                                    arg_i64(count), arg_i32(config.per_group)));
}

const struct op_class attncl__op_accumulate_fwd = {
    .name = OP_CLASS(accumulate_fwd),
    .in = OP_IN({"into", F32 | STATE, "..."}, {"value", F32 | OPTIONAL, "..."},
                {"guard", F32 | OPTIONAL, ""}),
    .launch = accumulate_launch,
    .flop = "2x",
};
