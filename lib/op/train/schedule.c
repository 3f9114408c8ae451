// SPDX-License-Identifier: MIT
//
// The learning rate of step t = steps taken + 1, a scalar (cl/train/schedule.cl).
//
//   INVERSE_SQRT   lr d_model^-1/2 min(t^-1/2, t warmup^-3/2)
//   others         lr t / warmup                          t <= warmup
//     CONSTANT     lr
//     LINEAR       lr + (min - lr) p                      p = (t - warmup) / (n_steps - warmup),
//     COSINE       min + (lr - min) (1 + cos(pi p)) / 2       at most 1
//
// attncl_schedule_rate() (lib/layer/optim.c) computes the same on the host, in double.

#include <float.h>
#include <math.h>

#include "attncl/kinds.h"
#include "op/op.h"

static attncl_status rate_infer(struct op_sig *sig)
{
    const struct schedule_rate_fwd_params *p = sig->params;

    REQUIRE(p->kind >= ATTNCL_RATE_CONSTANT && p->kind <= ATTNCL_RATE_COSINE, ATTNCL_ERR_ARGUMENT,
            "there is no schedule %d, only 0 to %d", (int)p->kind, (int)ATTNCL_RATE_COSINE);
    return ATTNCL_OK;
}

// Powers are computed in double.  If n_steps <= warmup, the last rate follows the warm-up directly.
static attncl_status rate_launch(struct launcher *l, const struct op_call *call)
{
    const struct schedule_rate_fwd_params *p = call->sig.params;
    const bool noam = p->kind == ATTNCL_RATE_INVERSE_SQRT;
    const double falling = p->n_steps - p->warmup;
    struct kspec spec = kspec_begin("train/schedule.cl", "schedule_rate_fwd");

    kspec_set_vw_ls(&spec, 1, 1);
    return attncl__launch(
        l, &spec, grid_1d(1, 1),
        ARGS(arg_mem(call->in[0]), arg_mem(call->out[0]), arg_i32(p->kind),
             arg_f32((float)(noam ? p->learning_rate / sqrt(p->d_model) : p->learning_rate)),
             arg_f32((float)(noam ? pow(p->warmup, -1.5) : p->warmup)),
             arg_f32(falling > 0 ? (float)(1 / falling) : FLT_MAX), arg_f32((float)p->min_rate)));
}

const struct op_class attncl__op_schedule_rate_fwd = {
    .name = OP_CLASS(schedule_rate_fwd),
    .in = OP_IN({"step", I32, ""}),
    .out = OP_OUT({"rate", F32, ""}),
    .infer = rate_infer,
    .launch = rate_launch,
};
