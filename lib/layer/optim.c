// SPDX-License-Identifier: MIT
//
// Adam and clipping as builders.  What depends on the number of steps is a value on the device: one
// compiled graph serves every step.

#include "attncl/optim.h"
#include "layer/layer.h"

static bool check_desc(attncl_graph *g, const attncl_adam_desc *desc)
{
    if (attncl__graph_failed(g))
        return false;
    if (!desc)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "adam desc is NULL");
    else if (desc->struct_size < sizeof *desc)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "adam desc has struct_size %zu, expected %zu",
                   desc->struct_size, sizeof *desc);
    return !attncl__graph_failed(g);
}

attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc, attncl_value step)
{
    if (!check_desc(g, desc))
        return ATTNCL_NONE_VALUE;
    const struct adam_rates_fwd_params params = {
        .learning_rate = desc->learning_rate,
        .beta1 = desc->beta1,
        .beta2 = desc->beta2,
        .optimized = desc->optimized != 0,
        .d_model = desc->d_model,
        .warmup = desc->warmup,
    };
    return attncl__graph_add(g, &attncl__op_adam_rates_fwd, &params, IN(step));
}

static struct adam_step_fwd_params step_params(const attncl_adam_desc *desc)
{
    const double decay = desc->weight_decay;
    return (struct adam_step_fwd_params){
        .beta1 = desc->beta1,
        .beta2 = desc->beta2,
        .eps = desc->eps,
        .decay = desc->decoupled ? 0 : decay,
        .shrink = desc->decoupled ? desc->learning_rate * decay : 0,
    };
}

attncl_adam_values attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc,
                                    attncl_value rates, attncl_value grad,
                                    const attncl_adam_values *before)
{
    const attncl_adam_values *b = before, none = {{0}, {0}, {0}, {0}};
    if (!check_desc(g, desc))
        return none;
    const struct adam_step_fwd_params adam = step_params(desc);
    const struct amsgrad_step_fwd_params amsgrad = {adam};
    const bool keeps_largest = attncl__given(b->max_exp_avg_sq);

    attncl_adam_values after = none;
    after.param = keeps_largest
                      ? attncl__graph_add(
                            g, &attncl__op_amsgrad_step_fwd, &amsgrad,
                            IN(b->param, grad, b->exp_avg, b->exp_avg_sq, rates, b->max_exp_avg_sq))
                      : attncl__graph_add(g, &attncl__op_adam_step_fwd, &adam,
                                          IN(b->param, grad, b->exp_avg, b->exp_avg_sq, rates));
    after.exp_avg = attncl__graph_result(g, after.param, 1);
    after.exp_avg_sq = attncl__graph_result(g, after.param, 2);
    if (keeps_largest)
        after.max_exp_avg_sq = attncl__graph_result(g, after.param, 3);
    return after;
}

void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                        attncl_value grad, const attncl_adam_values *values)
{
    const attncl_adam_values *v = values;
    if (!check_desc(g, desc))
        return;
    const struct adam_update_fwd_params adam = {step_params(desc)};
    const struct amsgrad_update_fwd_params amsgrad = {step_params(desc)};
    if (attncl__given(v->max_exp_avg_sq))
        attncl__graph_add(g, &attncl__op_amsgrad_update_fwd, &amsgrad,
                          IN(v->param, grad, v->exp_avg, v->exp_avg_sq, rates, v->max_exp_avg_sq));
    else
        attncl__graph_add(g, &attncl__op_adam_update_fwd, &adam,
                          IN(v->param, grad, v->exp_avg, v->exp_avg_sq, rates));
}

attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                   double max_norm, attncl_clip_style style,
                                   attncl_value *clipped_ret)
{
    const struct clip_factor_fwd_params params = {.max_norm = max_norm, .style = (int32_t)style};
    attncl_value sums = ATTNCL_NONE_VALUE;
    if (n == 0 || !grads || !clipped_ret)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%zu gradients to clip, must be at least 1", n);

    for (size_t i = 0; i < n; ++i)
        sums = attncl__graph_add(g, &attncl__op_sum_squares_fwd, NULL, IN(grads[i], sums));
    const attncl_value norm = attncl__graph_add(g, &attncl__op_clip_factor_fwd, &params, IN(sums));
    const attncl_value factor = attncl__graph_result(g, norm, 1);
    for (size_t i = 0; i < n; ++i)
        clipped_ret[i] = attncl__graph_add(g, &attncl__op_scale_by_fwd, NULL, IN(grads[i], factor));
    return norm;
}
