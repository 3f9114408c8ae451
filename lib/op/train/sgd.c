// SPDX-License-Identifier: MIT
//
// Stochastic gradient descent with momentum.
//
//   g += decay p
//   b = g at the first step, later momentum b + (1 - dampening) g
//   p -= lr b                            Nesterov: p -= lr (g + momentum b)
//
// Without momentum there is no b and p -= lr g.  sgd_rates reads the steps taken from device memory,
// so one compiled graph serves every step, and computes the factors that all parameters share:
//
//   rates = (lr, 0, 1) at the first step, later (lr, momentum, 1 - dampening)
//
// sgd_step creates new arrays; an absent b means the first step.  sgd_update overwrites the old ones,
// and may take clipping's factor of g (compile/fusion_prologue.c).

#include "op/row_launch.h"

enum { IN_PARAM, IN_GRAD, IN_RATES, IN_BUFFER, IN_FACTOR };

static attncl_status rates_infer(struct op_sig *sig)
{
    const struct sgd_rates_fwd_params *p = sig->params;

    REQUIRE(p->momentum >= 0, ATTNCL_ERR_ARGUMENT, "momentum is %g, must be at least 0",
            p->momentum);
    return ATTNCL_OK;
}

static attncl_status rates_launch(struct launcher *l, const struct op_call *call)
{
    const struct sgd_rates_fwd_params *p = call->sig.params;
    struct kspec spec = kspec_begin("train/sgd.cl", "sgd_rates_fwd");
    kspec_set_vw_ls(&spec, 1, 1);
    kspec_int(&spec, "MOMENTUM", 0);

    return attncl__launch(l, &spec, grid_1d(1, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->out[0]),
                               arg_i32(attncl__desc_present(&call->sig.in[1])),
                               arg_f32((float)p->learning_rate), arg_f32((float)p->momentum),
                               arg_f32((float)(1 - p->dampening))));
}

static bool has_momentum(const struct op_sig *sig)
{
    const struct sgd_step_fwd_params *p = sig->params;
    return p->momentum != 0;
}

static attncl_status step_infer(struct op_sig *sig)
{
    const struct sgd_step_fwd_params *p = sig->params; // sgd_update's are the same

    REQUIRE(!p->nesterov || p->momentum > 0, ATTNCL_ERR_ARGUMENT,
            "nesterov needs momentum, momentum is %g", p->momentum);
    if (sig->n_out > 0 && has_momentum(sig))
        sig->out[1].dtype = ATTNCL_F32;
    return ATTNCL_OK;
}

static attncl_status update_infer(struct op_sig *sig)
{
    TRY(step_infer(sig));
    REQUIRE(attncl__desc_present(&sig->in[IN_BUFFER]) == has_momentum(sig), ATTNCL_ERR_ARGUMENT,
            has_momentum(sig) ? "momentum_buffer is missing" : "momentum is 0: it has no buffer");
    return ATTNCL_OK;
}

// out: the parameter and the buffer after the step; NULL: in place.
static attncl_status launch_step(struct launcher *l, const struct op_call *call,
                                 const struct span *out, struct span factor)
{
    static const struct span in_place[2];
    const struct sgd_step_fwd_params *p = call->sig.params;
    const struct span *in = call->in, *to = out ? out : in_place;
    const int64_t count = attncl__desc_count(&call->sig.in[IN_PARAM]);
    struct elementwise_launch config =
        attncl__elementwise_launch(l->caps, "train/sgd.cl", "sgd_step_fwd", count);

    kspec_int(&config.spec, "MOMENTUM", has_momentum(&call->sig));
    return attncl__launch_part(
        l, &config.spec, config.grid,
        ARGS(arg_mem(in[IN_RATES]), arg_mem(factor), arg_mem(to[0]), arg_mem(to[1]), arg_i32(!out),
             arg_i32(factor.storage != NULL),
             arg_i32(attncl__desc_present(&call->sig.in[IN_BUFFER])), arg_f32((float)p->decay),
             arg_f32((float)p->momentum), arg_i32(p->nesterov)),
        ARGS(arg_written(in[IN_PARAM]), arg_mem(in[IN_GRAD]), arg_written(in[IN_BUFFER]),
             arg_i64(count), arg_i32(config.per_group)));
}

static attncl_status step_launch(struct launcher *l, const struct op_call *call)
{
    return launch_step(l, call, call->out, (struct span){NULL});
}

static attncl_status update_launch(struct launcher *l, const struct op_call *call)
{
    return launch_step(l, call, NULL, call->in[IN_FACTOR]);
}

const struct op_class attncl__op_sgd_rates_fwd = {
    .name = OP_CLASS(sgd_rates_fwd),
    .in = OP_IN({"step", I32, ""}, {"learning_rate", F32 | OPTIONAL, ""}),
    .out = OP_OUT({"rates", F32, "3"}),
    .infer = rates_infer,
    .launch = rates_launch,
};

const struct op_class attncl__op_sgd_step_fwd = {
    .name = OP_CLASS(sgd_step_fwd),
    .in = OP_IN({"param", F32, "..."}, {"grad", F32, "..."}, {"rates", F32, "3"},
                {"momentum_buffer", F32 | OPTIONAL, "..."}),
    .out = OP_OUT({"param", F32, "..."}, {"momentum_buffer", F32 | OPTIONAL, "..."}),
    .infer = step_infer,
    .launch = step_launch,
    .flop = "8x",
};

const struct op_class attncl__op_sgd_update_fwd = {
    .name = OP_CLASS(sgd_update_fwd),
    .in = OP_IN({"param", F32 | STATE, "..."}, {"grad", F32, "..."}, {"rates", F32, "3"},
                {"momentum_buffer", F32 | STATE | OPTIONAL, "..."}, {"factor", F32 | OPTIONAL, ""}),
    .infer = update_infer,
    .launch = update_launch,
    .flop = "8x",
};
