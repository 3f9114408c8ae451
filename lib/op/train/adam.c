// SPDX-License-Identifier: MIT
//
// Adam (Kingma and Ba 2014), step t = steps taken + 1.
//
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2,   AMSGrad: v_max = max(v_max, v)
//   p -= rates[0] m / (sqrt(v) rates[1] + eps)
//
// adam_rates reads the steps taken from device memory, so one compiled graph serves every step, and
// computes the factors that all parameters share:
//
//   rates[0] = lr_t / (1 - b1^t)                   rates[1] = 1 / sqrt(1 - b2^t)   as in PyTorch
//   rates[0] = lr_t sqrt(1 - b2^t) / (1 - b1^t)    rates[1] = 1                    optimized: the paper,
//                                                                                  end of section 2
//
// lr_t is lr, or the scalar input if given.  Weight decay: g += decay p, or decoupled
// p *= 1 - rates[2], where rates[2] = shrink + scheduled_decay lr_t.
//
// adam_step creates new arrays.  adam_update overwrites the old ones, and may take clipping's factor
// of g (compile/fusion_prologue.c).  AMSGrad if v_max is given.

#include <math.h>

#include "op/row_launch.h"

enum { IN_PARAM, IN_GRAD, IN_MEAN, IN_SQUARE, IN_RATES, IN_LARGEST, IN_FACTOR };

static attncl_status rates_infer(struct op_sig *sig)
{
    const struct adam_rates_fwd_params *p = sig->params;

    REQUIRE(p->beta1 >= 0 && p->beta1 < 1 && p->beta2 >= 0 && p->beta2 < 1, ATTNCL_ERR_ARGUMENT,
            "betas are %g and %g, expected 0 or more and less than 1", p->beta1, p->beta2);
    return ATTNCL_OK;
}

// Constants are computed in double, to keep the device's powers precise.
static attncl_status rates_launch(struct launcher *l, const struct op_call *call)
{
    const struct adam_rates_fwd_params *p = call->sig.params;
    // Work for one work-item, in the same program as the steps.
    struct elementwise_launch one =
        attncl__elementwise_launch(l->caps, "train/adam.cl", "adam_rates_fwd", 1);
    kspec_int(&one.spec, "AMSGRAD", 0);

    return attncl__launch(l, &one.spec, one.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i32(attncl__desc_present(&call->sig.in[1])),
                               arg_f32((float)log(p->beta1)), arg_f32((float)log(p->beta2)),
                               arg_f32((float)p->learning_rate), arg_i32(p->optimized),
                               arg_f32((float)p->shrink), arg_f32((float)p->scheduled_decay)));
}

static bool is_amsgrad(const struct op_sig *sig)
{
    return attncl__desc_present(&sig->in[IN_LARGEST]);
}

static attncl_status step_infer(struct op_sig *sig)
{
    const struct adam_step_fwd_params *p = sig->params;

    REQUIRE(p->eps >= 0 && p->decay >= 0, ATTNCL_ERR_ARGUMENT,
            "eps is %g and weight_decay %g, expected 0 or more", p->eps, p->decay);
    return ATTNCL_OK;
}

// out: parameter, mean, mean square and largest mean square after the step; NULL: in place.
static attncl_status launch_step(struct launcher *l, const struct op_call *call,
                                 const struct span *out, struct span factor)
{
    static const struct span in_place[4];
    const struct adam_step_fwd_params *p = call->sig.params;
    const struct span *in = call->in, *to = out ? out : in_place;
    const int64_t count = attncl__desc_count(&call->sig.in[IN_PARAM]);
    struct elementwise_launch config =
        attncl__elementwise_launch(l->caps, "train/adam.cl", "adam_step_fwd", count);

    kspec_int(&config.spec, "AMSGRAD", is_amsgrad(&call->sig));
    return attncl__launch_part(
        l, &config.spec, config.grid,
        ARGS(arg_mem(in[IN_RATES]), arg_mem(factor), arg_mem(to[0]), arg_mem(to[1]), arg_mem(to[2]),
             arg_mem(to[3]), arg_i32(!out), arg_i32(factor.storage != NULL),
             arg_f32((float)p->beta1), arg_f32((float)(1 - p->beta1)), arg_f32((float)p->beta2),
             arg_f32((float)(1 - p->beta2)), arg_f32((float)p->eps), arg_f32((float)p->decay)),
        ARGS(arg_written(in[IN_PARAM]), arg_mem(in[IN_GRAD]), arg_written(in[IN_MEAN]),
             arg_written(in[IN_SQUARE]), arg_written(in[IN_LARGEST]), arg_i64(count),
             arg_i32(config.per_group)));
}

static attncl_status step_launch(struct launcher *l, const struct op_call *call)
{
    return launch_step(l, call, call->out, (struct span){NULL});
}

static attncl_status update_launch(struct launcher *l, const struct op_call *call)
{
    return launch_step(l, call, NULL, call->in[IN_FACTOR]);
}

const struct op_class attncl__op_adam_rates_fwd = {
    .name = OP_CLASS(adam_rates_fwd),
    .in = OP_IN({"step", I32, ""}, {"learning_rate", F32 | OPTIONAL, ""}),
    .out = OP_OUT({"rates", F32, "3"}),
    .infer = rates_infer,
    .launch = rates_launch,
};

const struct op_class attncl__op_adam_step_fwd = {
    .name = OP_CLASS(adam_step_fwd),
    .in = OP_IN({"param", F32, "..."}, {"grad", F32, "..."}, {"exp_avg", F32, "..."},
                {"exp_avg_sq", F32, "..."}, {"rates", F32, "3"},
                {"max_exp_avg_sq", F32 | OPTIONAL, "..."}),
    .out = OP_OUT({"param", F32, "..."}, {"exp_avg", F32, "..."}, {"exp_avg_sq", F32, "..."},
                  {"max_exp_avg_sq", F32, "=max_exp_avg_sq"}),
    .infer = step_infer,
    .launch = step_launch,
    .flop = "14x",
};

const struct op_class attncl__op_adam_update_fwd = {
    .name = OP_CLASS(adam_update_fwd),
    .in =
        OP_IN({"param", F32 | STATE, "..."}, {"grad", F32, "..."}, {"exp_avg", F32 | STATE, "..."},
              {"exp_avg_sq", F32 | STATE, "..."}, {"rates", F32, "3"},
              {"max_exp_avg_sq", F32 | STATE | OPTIONAL, "..."}, {"factor", F32 | OPTIONAL, ""}),
    .infer = step_infer,
    .launch = update_launch,
    .flop = "14x",
};
