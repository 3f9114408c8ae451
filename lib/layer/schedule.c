// SPDX-License-Identifier: MIT
//
// Learning-rate schedules: on the host in double, and as a node.  The formulas are in
// lib/op/train/schedule.c.

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "attncl/optim.h"
#include "base/struct.h"
#include "layer/layer.h"

// A schedule of a caller, checked, with the default of warmup filled in.
static attncl_status read_schedule(const attncl_schedule_desc *given, attncl_schedule_desc *ret)
{
    *ret = (attncl_schedule_desc)ATTNCL_SCHEDULE_DESC_INIT;
    TRY(STRUCT_READ(attncl_schedule_desc, ret, given));
    const bool noam = ret->kind == ATTNCL_RATE_INVERSE_SQRT;
    const bool falls = ret->kind == ATTNCL_RATE_LINEAR || ret->kind == ATTNCL_RATE_COSINE;
    // In 0.1 the field was there and a constant rate did not read it.
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

// Which part of the way from the end of the warm-up to n_steps lies behind step t.
static double fallen(const attncl_schedule_desc *s, double t)
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
    REQUIRE(steps_taken >= 0, ATTNCL_ERR_ARGUMENT, "%" PRId64 " steps taken, must be at least 0",
            steps_taken);
    if (s.kind == ATTNCL_RATE_INVERSE_SQRT)
        *rate_ret =
            learning_rate / sqrt(s.d_model) * fmin(1 / sqrt(t), t / (s.warmup * sqrt(s.warmup)));
    else if (t <= s.warmup)
        *rate_ret = learning_rate * t / s.warmup;
    else if (s.kind == ATTNCL_RATE_LINEAR)
        *rate_ret = learning_rate + (s.min_rate - learning_rate) * fallen(&s, t);
    else if (s.kind == ATTNCL_RATE_COSINE)
        *rate_ret = s.min_rate + (learning_rate - s.min_rate) * (1 + cos(pi * fallen(&s, t))) / 2;
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
