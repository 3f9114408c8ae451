// SPDX-License-Identifier: MIT
//
// into = keep into + gain x, in place (cl/train/accumulate.cl).
//
//   keep = gain = 1           sums of gradients over batches
//   keep = d, gain = 1 - d    an exponential moving average
//   keep = 0, no x            zeros
//
// Where keep is 0 what `into` held is not read.  With a guard [] that is not a number `into` stays as it is.

#include "op/op.h"
#include "op/row_launch.h"

enum { IN_INTO, IN_VALUE, IN_GUARD };

static attncl_status accumulate_infer(struct op_sig *sig)
{
    const struct tensor_desc *into = &sig->in[IN_INTO], *value = &sig->in[IN_VALUE];
    const struct tensor_desc *guard = &sig->in[IN_GUARD];

    TRY(attncl__check_input("into", into, ATTNCL_F32, -1));
    if (attncl__desc_present(guard))
        TRY(attncl__check_input("guard", guard, ATTNCL_F32, 0));
    if (!attncl__desc_present(value))
        return ATTNCL_OK;
    TRY(attncl__check_input("value", value, ATTNCL_F32, -1));
    REQUIRE(attncl__desc_same_shape(value, into), ATTNCL_ERR_SHAPE, "value is %s, into is %s",
            SHAPE(value), SHAPE(into));
    return ATTNCL_OK;
}

static attncl_status accumulate_launch(struct launcher *l, const struct op_call *call)
{
    const struct accumulate_fwd_params *p = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.in[IN_INTO]);
    const struct elementwise_launch config =
        attncl__elementwise_launch(l->caps, "train/accumulate.cl", "accumulate_fwd", count);

    if (count == 0)
        return ATTNCL_OK;
    return attncl__launch(
        l, &config.spec, config.grid,
        ARGS(arg_mem(call->in[IN_INTO]), arg_mem(call->in[IN_VALUE]), arg_mem(call->in[IN_GUARD]),
             arg_i32(attncl__desc_present(&call->sig.in[IN_VALUE])),
             arg_i32(attncl__desc_present(&call->sig.in[IN_GUARD])), arg_f32((float)p->keep),
             arg_f32((float)p->gain), arg_i64(count), arg_i32(config.per_group)));
}

const struct op_class attncl__op_accumulate_fwd = {
    .name = OP_CLASS_MASKS(accumulate_fwd, 3, 0),
    .optional = 1u << IN_VALUE | 1u << IN_GUARD,
    .state = 1u << IN_INTO,
    .infer = accumulate_infer,
    .launch = accumulate_launch,
    .flop_per_element = 2,
};
