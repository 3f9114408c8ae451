// SPDX-License-Identifier: MIT
// Steps of optimisers as a training loop takes them: the rate from the host or from a schedule, state
// from run to run.  The ops have their own tests.

#include <stddef.h>

#include "attncl/optim.h"
#include "ref/ref.h"
#include "support/layer_test.h"

enum { N = 37 };

static struct host *scalar(attncl_dtype dtype)
{
    return host_new(dtype, 0, NULL);
}

static attncl_value state(struct rig *b, const char *name)
{
    return attncl_graph_state(b->g, name, ATTNCL_F32, 1, (const int64_t[]){N});
}

TEST(sgd_in_place_follows_the_rates_of_the_host)
{
    const attncl_schedule_desc cosine = {sizeof cosine, ATTNCL_RATE_COSINE, 0, 2, 5, 0.01};
    struct ref_sgd ref = {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1};
    attncl_sgd_desc desc = ATTNCL_SGD_DESC_INIT;
    attncl_sgd_values values = ATTNCL_SGD_VALUES_INIT;
    struct rig b;
    struct host *g = host_random(1, DIMS(N)), *p = host_new(ATTNCL_F32, DIMS(N));
    struct host *rate = scalar(ATTNCL_F32), *step = scalar(ATTNCL_I32);
    struct host *want = host_like(p), *buffer = host_like(p);

    rig_open(&b);
    desc.momentum = ref.momentum;
    desc.dampening = ref.dampening;
    desc.weight_decay = ref.weight_decay;
    values.param = state(&b, "p");
    values.momentum_buffer = state(&b, "b");
    const attncl_value grad = rig_in(&b, g), learning_rate = rig_in(&b, rate);
    const attncl_value rates = attncl_sgd_rates(b.g, &desc, learning_rate, rig_in(&b, step));
    attncl_sgd_update(b.g, &desc, rates, grad, &values);
    rig_out(&b, values.param, p);
    ck_ok(rig_compile(&b));
    for (int64_t t = 0; t < 7; ++t) {
        ck_ok(attncl_schedule_rate(&cosine, 0.5, t, &ref.learning_rate));
        rate->data[0] = ref.learning_rate;
        step->data[0] = (double)t;
        host_set(g, host_random((unsigned)t + 1, DIMS(N))->data);
        ref_sgd_step(&ref, t, want, g, buffer);
        rig_run(&b);
        ck_near(p, want, 3e-6, 3e-6);
    }
    rig_close(&b);
}

TEST(the_default_warm_up_is_2000_steps_of_the_transformers_schedule)
{
    attncl_schedule_desc desc = ATTNCL_SCHEDULE_DESC_INIT;
    double rate, want;

    ck_ok(attncl_schedule_rate(&desc, 0.5, 0, &rate));
    ck_assert_double_eq(rate, 0.5);
    ck_fails(attncl_schedule_rate(&desc, 0.5, 0, NULL), ATTNCL_ERR_ARGUMENT, "rate_ret is NULL");
    desc.kind = ATTNCL_RATE_INVERSE_SQRT;
    desc.d_model = 64;
    ck_ok(attncl_schedule_rate(&desc, 0.5, 700, &rate));
    desc.warmup = 2000;
    ck_ok(attncl_schedule_rate(&desc, 0.5, 700, &want));
    ck_assert_double_eq(rate, want);

    // In 0.1 a constant rate did not read the warm-up.
    desc = (attncl_schedule_desc){
        offsetof(attncl_schedule_desc, n_steps), ATTNCL_RATE_CONSTANT, 0, 100, 0, 0};
    ck_ok(attncl_schedule_rate(&desc, 0.5, 0, &rate));
    ck_assert_double_eq(rate, 0.5);
}

// A schedule on the device gives the step that its rate from the host gives.
TEST(adam_with_a_schedule_is_adam_at_its_rates)
{
    const attncl_schedule_desc linear = {sizeof linear, ATTNCL_RATE_LINEAR, 0, 2, 5, 0.01};
    attncl_adam_desc desc = ATTNCL_ADAMW_DESC_INIT;
    attncl_adam_values before = ATTNCL_ADAM_VALUES_INIT, after[2] = {before, before};
    struct rig b;
    struct host *x = host_uniform(1, 0.5, 1, DIMS(N)), *p[2] = {host_like(x), host_like(x)};
    struct host *rate = scalar(ATTNCL_F32), *step = scalar(ATTNCL_I32);
    double now;

    rig_open(&b);
    desc.learning_rate = 0.3;
    desc.weight_decay = 0.2;
    before.param = before.exp_avg = before.exp_avg_sq = rig_in(&b, x);
    const attncl_value learning_rate = rig_in(&b, rate), taken = rig_in(&b, step);
    const attncl_value rates[2] = {
        attncl_adam_rates(b.g, &desc, attncl_learning_rate(b.g, &linear, 0.3, taken), taken),
        attncl_adam_rates(b.g, &desc, learning_rate, taken)};
    for (int i = 0; i < 2; ++i) {
        attncl_adam_step(b.g, &desc, rates[i], before.param, &before, &after[i]);
        rig_out(&b, after[i].param, p[i]);
    }
    ck_ok(rig_compile(&b));
    for (int64_t t = 0; t < 6; ++t) {
        ck_ok(attncl_schedule_rate(&linear, 0.3, t, &now));
        rate->data[0] = now;
        step->data[0] = (double)t;
        rig_run(&b);
        ck_near(p[0], p[1], 1e-6, 0);
    }
    rig_close(&b);
}

// Three runs are summed, averaged and, in the same run, set to zero after the sum was read.
TEST(sums_and_averages_in_place)
{
    struct rig b;
    struct host *x = host_random(1, DIMS(N)), *sum = host_new(ATTNCL_F32, DIMS(N));
    struct host *average = host_like(sum), *zeroed = host_like(sum);
    struct host *want_sum = host_like(sum), *want_average = host_like(sum);

    rig_open(&b);
    const attncl_value value = rig_in(&b, x), total = state(&b, "total");
    const attncl_value mean = state(&b, "mean"), cleared = state(&b, "cleared");
    attncl_accumulate(b.g, total, value);
    attncl_average_update(b.g, mean, total, 0.75);
    attncl_accumulate(b.g, cleared, value);
    attncl_zero(b.g, cleared);
    attncl_accumulate(b.g, cleared, value);
    rig_out(&b, total, sum);
    rig_out(&b, mean, average);
    rig_out(&b, cleared, zeroed);
    ck_ok(rig_compile(&b));
    for (unsigned run = 1; run <= 3; ++run) {
        host_set(x, host_random(run, DIMS(N))->data);
        ref_accumulate_fwd(want_sum, x, 1, 1);
        ref_accumulate_fwd(want_average, want_sum, 0.75, 0.25);
        rig_run(&b);
        ck_near(sum, want_sum, 3 * 6e-8, 1e-6);
        ck_near(average, want_average, 6 * 6e-8, 1e-6);
        ck_near(zeroed, x, 0, 0);
    }
    rig_close(&b);
}

TEST(gradients_are_clamped)
{
    struct rig b;
    struct host *x = host_random(1, DIMS(N)), *y = host_random(2, DIMS(3, 5));
    struct host *clipped[2] = {host_like(x), host_like(y)};
    attncl_value grads[2], after[2];

    rig_open(&b);
    grads[0] = rig_in(&b, x);
    grads[1] = rig_in(&b, y);
    attncl_clip_grad_value(b.g, 2, grads, 0.25, after);
    rig_out(&b, after[0], clipped[0]);
    rig_out(&b, after[1], clipped[1]);
    rig_run_once(&b);
    for (int i = 0; i < N; ++i)
        ck_assert_double_eq(clipped[0]->data[i], fmin(0.25, fmax(-0.25, x->data[i])));
    for (int i = 0; i < 15; ++i)
        ck_assert_double_eq(clipped[1]->data[i], fmin(0.25, fmax(-0.25, y->data[i])));
}

TEST(refusals)
{
    attncl_sgd_desc desc = ATTNCL_SGD_DESC_INIT;
    struct rig b;

    desc.nesterov = 1;
    rig_open(&b);
    attncl_sgd_rates(b.g, &desc, ATTNCL_NONE_VALUE, rig_in(&b, scalar(ATTNCL_I32)));
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "nesterov needs momentum > 0 and dampening 0");
    rig_open(&b);
    attncl_average_update(b.g, state(&b, "mean"), rig_in(&b, host_random(1, DIMS(N))), 1.5);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "decay is 1.5");
    rig_open(&b);
    attncl_accumulate(b.g, state(&b, "total"), ATTNCL_NONE_VALUE);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "value");
    rig_open(&b);
    attncl_accumulate(b.g, rig_in(&b, host_random(1, DIMS(N))),
                      rig_in(&b, host_random(1, DIMS(N))));
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "must be state or a weight");
    rig_open(&b);
    attncl_clip_grad_value(b.g, 0, NULL, 1, NULL);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "0 gradients to clip");
    rig_open(&b);
    const attncl_schedule_desc zero = {sizeof zero, ATTNCL_RATE_LINEAR, 0, 2, 0, 0};
    attncl_learning_rate(b.g, &zero, 1, rig_in(&b, scalar(ATTNCL_I32)));
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "n_steps is 0");
}
