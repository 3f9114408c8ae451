// SPDX-License-Identifier: MIT
//
// Builders of Adam, SGD, clipping, in-place sums and learning-rate schedules.  Everything that depends
// on the number of steps is a value on the device, so one compiled graph serves every step.

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "attncl/optim.h"
#include "base/struct.h"
#include "layer/layer.h"

attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc,
                               attncl_value learning_rate, attncl_value step)
{
    attncl_adam_desc d = ATTNCL_ADAM_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_adam_desc, &d, desc))
        return ATTNCL_NONE_VALUE;
    const double decay = d.decoupled ? d.weight_decay : 0;
    const struct adam_rates_fwd_params params = {
        .learning_rate = d.learning_rate,
        .beta1 = d.beta1,
        .beta2 = d.beta2,
        .optimized = d.optimized != 0,
        .shrink = d.scheduled_decay ? 0 : d.learning_rate * decay,
        .scheduled_decay = d.scheduled_decay ? decay : 0,
    };
    return attncl__graph_add(g, &attncl__op_adam_rates_fwd, &params, IN(step, learning_rate));
}

static struct adam_step_fwd_params step_params(const attncl_adam_desc *desc)
{
    return (struct adam_step_fwd_params){
        .beta1 = desc->beta1,
        .beta2 = desc->beta2,
        .eps = desc->eps,
        .decay = desc->decoupled ? 0 : desc->weight_decay,
    };
}

static attncl_value add_step(attncl_graph *g, const struct op_class *cls, const void *params,
                             attncl_value rates, attncl_value grad, const attncl_adam_values *v)
{
    return attncl__graph_add(
        g, cls, params, IN(v->param, grad, v->exp_avg, v->exp_avg_sq, rates, v->max_exp_avg_sq));
}

void attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                      attncl_value grad, const attncl_adam_values *before,
                      attncl_adam_values *after_ret)
{
    attncl_adam_values old = ATTNCL_ADAM_VALUES_INIT, after = ATTNCL_ADAM_VALUES_INIT;
    attncl_adam_desc d = ATTNCL_ADAM_DESC_INIT;
    if (LAYER_STRUCT(g, attncl_adam_desc, &d, desc) &&
        LAYER_STRUCT(g, attncl_adam_values, &old, before)) {
        const struct adam_step_fwd_params params = step_params(&d);
        after.param = add_step(g, &attncl__op_adam_step_fwd, &params, rates, grad, &old);
        after.exp_avg = attncl__graph_result(g, after.param, 1);
        after.exp_avg_sq = attncl__graph_result(g, after.param, 2);
        if (attncl__given(old.max_exp_avg_sq))
            after.max_exp_avg_sq = attncl__graph_result(g, after.param, 3);
    }
    LAYER_STRUCT_WRITE(g, attncl_adam_values, after_ret, &after);
}

void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                        attncl_value grad, const attncl_adam_values *values)
{
    attncl_adam_values v = ATTNCL_ADAM_VALUES_INIT;
    attncl_adam_desc d = ATTNCL_ADAM_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_adam_desc, &d, desc) ||
        !LAYER_STRUCT(g, attncl_adam_values, &v, values))
        return;
    const struct adam_update_fwd_params params = {step_params(&d)};
    add_step(g, &attncl__op_adam_update_fwd, &params, rates, grad, &v);
}

static bool read_sgd(attncl_graph *g, const attncl_sgd_desc *given, attncl_sgd_desc *ret)
{
    *ret = (attncl_sgd_desc)ATTNCL_SGD_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_sgd_desc, ret, given))
        return false;
    if (ret->nesterov && !(ret->momentum > 0 && ret->dampening == 0))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT,
                   "nesterov needs momentum > 0 and dampening 0, they are %g and %g", ret->momentum,
                   ret->dampening);
    return !attncl__graph_failed(g);
}

static struct sgd_step_fwd_params sgd_params(const attncl_sgd_desc *desc)
{
    return (struct sgd_step_fwd_params){
        .momentum = desc->momentum,
        .decay = desc->weight_decay,
        .nesterov = desc->nesterov != 0,
    };
}

attncl_value attncl_sgd_rates(attncl_graph *g, const attncl_sgd_desc *desc,
                              attncl_value learning_rate, attncl_value step)
{
    attncl_sgd_desc d;
    if (!read_sgd(g, desc, &d))
        return ATTNCL_NONE_VALUE;
    const struct sgd_rates_fwd_params params = {d.learning_rate, d.momentum, d.dampening};
    return attncl__graph_add(g, &attncl__op_sgd_rates_fwd, &params, IN(step, learning_rate));
}

void attncl_sgd_step(attncl_graph *g, const attncl_sgd_desc *desc, attncl_value rates,
                     attncl_value grad, const attncl_sgd_values *before,
                     attncl_sgd_values *after_ret)
{
    attncl_sgd_values old = ATTNCL_SGD_VALUES_INIT, after = ATTNCL_SGD_VALUES_INIT;
    attncl_sgd_desc d;
    if (read_sgd(g, desc, &d) && LAYER_STRUCT(g, attncl_sgd_values, &old, before)) {
        const struct sgd_step_fwd_params params = sgd_params(&d);
        after.param = attncl__graph_add(g, &attncl__op_sgd_step_fwd, &params,
                                        IN(old.param, grad, rates, old.momentum_buffer));
        if (d.momentum != 0)
            after.momentum_buffer = attncl__graph_result(g, after.param, 1);
    }
    LAYER_STRUCT_WRITE(g, attncl_sgd_values, after_ret, &after);
}

void attncl_sgd_update(attncl_graph *g, const attncl_sgd_desc *desc, attncl_value rates,
                       attncl_value grad, const attncl_sgd_values *values)
{
    attncl_sgd_values v = ATTNCL_SGD_VALUES_INIT;
    attncl_sgd_desc d;
    if (!read_sgd(g, desc, &d) || !LAYER_STRUCT(g, attncl_sgd_values, &v, values))
        return;
    const struct sgd_update_fwd_params params = {sgd_params(&d)};
    attncl__graph_add(g, &attncl__op_sgd_update_fwd, &params,
                      IN(v.param, grad, rates, v.momentum_buffer));
}

attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                   double max_norm, attncl_clip_style style,
                                   attncl_value *clipped_ret)
{
    const struct clip_factor_fwd_params params = {.max_norm = max_norm, .style = (int32_t)style};
    attncl_value sums = ATTNCL_NONE_VALUE;
    if (n == 0 || !grads || !clipped_ret)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%zu gradients to clip, must be at least 1", n);

    for (size_t i = 0; i < n; i += N_PARTS) {
        const size_t n_parts = n - i < N_PARTS ? n - i : N_PARTS;
        attncl_value in[1 + N_PARTS] = {sums};
        memcpy(in + 1, grads + i, n_parts * sizeof *in);
        sums = attncl__graph_add(g, &attncl__op_sum_squares_fwd, NULL, in, 1 + (int)n_parts);
    }
    const attncl_value norm = attncl__graph_add(g, &attncl__op_clip_factor_fwd, &params, IN(sums));
    const attncl_value factor = attncl__graph_result(g, norm, 1);
    for (size_t i = 0; i < n; ++i)
        clipped_ret[i] = attncl__graph_add(g, &attncl__op_scale_by_fwd, NULL, IN(grads[i], factor));
    return norm;
}

void attncl_clip_grad_value(attncl_graph *g, size_t n, const attncl_value *grads, double max_value,
                            attncl_value *clipped_ret)
{
    const struct clamp_fwd_params params = {max_value};
    if (n == 0 || !grads || !clipped_ret) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%zu gradients to clip, must be at least 1", n);
        return;
    }
    for (size_t i = 0; i < n; ++i)
        clipped_ret[i] = attncl__graph_add(g, &attncl__op_clamp_fwd, &params, IN(grads[i]));
}

static void accumulate(attncl_graph *g, attncl_value into, attncl_value value, attncl_value guard,
                       double keep, double gain)
{
    const struct accumulate_fwd_params params = {keep, gain};
    attncl__graph_add(g, &attncl__op_accumulate_fwd, &params, IN(into, value, guard));
}

void attncl_accumulate(attncl_graph *g, attncl_value into, attncl_value value)
{
    struct tensor_desc shape;
    if (attncl__layer_shape(g, value, "value", &shape))
        accumulate(g, into, value, ATTNCL_NONE_VALUE, 1, 1);
}

void attncl_zero(attncl_graph *g, attncl_value into)
{
    accumulate(g, into, ATTNCL_NONE_VALUE, ATTNCL_NONE_VALUE, 0, 0);
}

void attncl__layer_average_update(attncl_graph *g, attncl_value average, attncl_value value,
                                  attncl_value guard, double decay)
{
    struct tensor_desc shape;
    if (!(decay >= 0 && decay <= 1))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "decay is %g, expected 0 to 1", decay);
    else if (attncl__layer_shape(g, value, "value", &shape))
        accumulate(g, average, value, guard, decay, 1 - decay);
}

void attncl_average_update(attncl_graph *g, attncl_value average, attncl_value value, double decay)
{
    attncl__layer_average_update(g, average, value, ATTNCL_NONE_VALUE, decay);
}

// -- learning-rate schedules, on the host in double and as a node (formulas:
// lib/op/train/schedule.c)

// Copies and checks a caller's schedule, and fills in the default warmup.
static attncl_status read_schedule(const attncl_schedule_desc *given, attncl_schedule_desc *ret)
{
    *ret = (attncl_schedule_desc)ATTNCL_SCHEDULE_DESC_INIT;
    TRY(STRUCT_READ(attncl_schedule_desc, ret, given));
    const bool noam = ret->kind == ATTNCL_RATE_INVERSE_SQRT;
    const bool falls = ret->kind == ATTNCL_RATE_LINEAR || ret->kind == ATTNCL_RATE_COSINE;
    // Version 0.1 had the field but ignored it for a constant rate.
    const bool is_old = given->struct_size <= offsetof(attncl_schedule_desc, n_steps);
    if (ret->warmup == -1 || (is_old && ret->kind == ATTNCL_RATE_CONSTANT))
        ret->warmup = noam ? 2000 : 0;

    REQUIRE(noam || falls || ret->kind == ATTNCL_RATE_CONSTANT, ATTNCL_ERR_ARGUMENT,
            "schedule %d is unknown", (int)ret->kind);
    REQUIRE(!noam || (ret->d_model > 0 && ret->warmup > 0), ATTNCL_ERR_ARGUMENT,
            "d_model is %g, warmup is %g: must be greater than 0", ret->d_model, ret->warmup);
    REQUIRE(ret->warmup >= 0, ATTNCL_ERR_ARGUMENT, "warmup is %g, must be at least 0, or -1",
            ret->warmup);
    REQUIRE(!falls || ret->n_steps >= 1, ATTNCL_ERR_ARGUMENT, "n_steps is %g, must be at least 1",
            ret->n_steps);
    REQUIRE(!falls || ret->min_rate >= 0, ATTNCL_ERR_ARGUMENT, "min_rate is %g, must be at least 0",
            ret->min_rate);
    return ATTNCL_OK;
}

// Step t as a fraction of the way from the end of the warm-up to n_steps.
static double decay_progress(const attncl_schedule_desc *s, double t)
{
    const double steps = s->n_steps - s->warmup;
    return t >= s->n_steps || steps <= 0 ? 1 : (t - s->warmup) / steps;
}

attncl_status attncl_schedule_rate(const attncl_schedule_desc *schedule, double learning_rate,
                                   int64_t steps_taken, double *rate_ret)
{
    const double pi = 3.14159265358979323846, t = (double)steps_taken + 1;
    attncl_schedule_desc s;

    TRY(read_schedule(schedule, &s));
    REQUIRE(rate_ret, ATTNCL_ERR_ARGUMENT, "rate_ret is NULL");
    REQUIRE(steps_taken >= 0, ATTNCL_ERR_ARGUMENT, "%" PRId64 " steps taken, must be at least 0",
            steps_taken);
    if (s.kind == ATTNCL_RATE_INVERSE_SQRT)
        *rate_ret =
            learning_rate / sqrt(s.d_model) * fmin(1 / sqrt(t), t / (s.warmup * sqrt(s.warmup)));
    else if (t <= s.warmup)
        *rate_ret = learning_rate * t / s.warmup;
    else if (s.kind == ATTNCL_RATE_LINEAR)
        *rate_ret = learning_rate + (s.min_rate - learning_rate) * decay_progress(&s, t);
    else if (s.kind == ATTNCL_RATE_COSINE)
        *rate_ret =
            s.min_rate + (learning_rate - s.min_rate) * (1 + cos(pi * decay_progress(&s, t))) / 2;
    else
        *rate_ret = learning_rate;
    return ATTNCL_OK;
}

attncl_value attncl_learning_rate(attncl_graph *g, const attncl_schedule_desc *schedule,
                                  double learning_rate, attncl_value step)
{
    attncl_schedule_desc s;

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    const attncl_status status = read_schedule(schedule, &s);
    if (status != ATTNCL_OK)
        return GRAPH_FAIL(g, status, "%s", attncl_last_error());
    const struct schedule_rate_fwd_params params = {
        .kind = (int32_t)s.kind,
        .learning_rate = learning_rate,
        .d_model = s.d_model,
        .warmup = s.warmup,
        .n_steps = s.n_steps,
        .min_rate = s.min_rate,
    };
    return attncl__graph_add(g, &attncl__op_schedule_rate_fwd, &params, IN(step));
}
