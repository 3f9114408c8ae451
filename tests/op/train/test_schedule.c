// SPDX-License-Identifier: MIT
// The rate of a step, on the device and on the host, against its reference (tests/ref/schedule.c).

#include "attncl/optim.h"
#include "ref/ref.h"
#include "support/op_test.h"

static const struct ref_schedule schedules[] = {
    {ATTNCL_RATE_CONSTANT, 0.1, 0, 0, 0, 0},      {ATTNCL_RATE_CONSTANT, 0.1, 0, 7, 0, 0},
    {ATTNCL_RATE_INVERSE_SQRT, 1, 128, 20, 0, 0}, {ATTNCL_RATE_LINEAR, 0.1, 0, 0, 400, 0},
    {ATTNCL_RATE_LINEAR, 0.1, 0, 10, 400, 0.01},  {ATTNCL_RATE_COSINE, 0.1, 0, 0, 400, 0},
    {ATTNCL_RATE_COSINE, 0.1, 0, 10, 400, 0.01},  {ATTNCL_RATE_COSINE, 0.1, 0, 2.5, 3, 0.2},
    {ATTNCL_RATE_LINEAR, 0.1, 0, 400, 400, 0.01}, {ATTNCL_RATE_COSINE, 0.1, 0, 500, 400, 0.01},
};
static const int64_t taken[] = {0, 1, 2, 6, 7, 9, 10, 19, 20, 200, 398, 399, 400, 499, 500, 900};

TABLE_TEST(matches_the_reference, schedules)
{
    const struct ref_schedule *s = &schedules[_i];
    const struct schedule_rate_fwd_params params = {s->kind,   s->learning_rate, s->d_model,
                                                    s->warmup, s->n_steps,       s->min_rate};
    const attncl_schedule_desc desc = {
        sizeof desc, (attncl_rate_schedule)s->kind, s->d_model, s->warmup, s->n_steps, s->min_rate};
    struct host *step = host_new(ATTNCL_I32, 0, NULL), *want = host_new(ATTNCL_F32, 0, NULL);

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; ++i) {
        double rate;
        step->data[0] = (double)taken[i];
        want->data[0] = ref_schedule_rate(s, (double)taken[i] + 1);
        // The rate falls to a part of its first value, and with it go digits.
        ck_op("schedule_rate_fwd", &params, HOSTS(step), HOSTS(want), 8 * 6e-8,
              3 * 6e-8 * s->learning_rate);
        ck_ok(attncl_schedule_rate(&desc, s->learning_rate, taken[i], &rate));
        ck_assert_double_le(fabs(rate - want->data[0]), 1e-15);
    }
}

TEST(defaults_of_the_warm_up)
{
    attncl_schedule_desc desc = ATTNCL_SCHEDULE_DESC_INIT;
    struct ref_schedule noam = {ATTNCL_RATE_INVERSE_SQRT, 1, 64, 2000, 0, 0};
    double rate;

    ck_ok(attncl_schedule_rate(&desc, 0.1, 0, &rate));
    ck_assert_double_eq(rate, 0.1);
    desc.kind = ATTNCL_RATE_INVERSE_SQRT;
    desc.d_model = 64;
    ck_ok(attncl_schedule_rate(&desc, 1, 99, &rate));
    ck_assert_double_le(fabs(rate - ref_schedule_rate(&noam, 100)), 1e-15);
}

// In 0.1 the struct ended after warmup, which was 2000 and of no effect on a constant rate.
TEST(a_constant_rate_of_an_old_program_has_no_warm_up)
{
    attncl_schedule_desc desc = {
        offsetof(attncl_schedule_desc, n_steps), ATTNCL_RATE_CONSTANT, 0, 2000, 0, 0};
    double rate;

    ck_ok(attncl_schedule_rate(&desc, 0.1, 0, &rate));
    ck_assert_double_eq(rate, 0.1);
}

TEST(refusals)
{
    const struct schedule_rate_fwd_params bad = {.kind = 4};
    attncl_schedule_desc desc = ATTNCL_SCHEDULE_DESC_INIT;
    struct host *step = host_new(ATTNCL_I32, 0, NULL);
    double rate = 7;

    ck_refused("schedule_rate_fwd", &bad, HOSTS(step), ATTNCL_ERR_ARGUMENT,
               "there is no schedule 4");
    ck_fails(attncl_schedule_rate(&desc, 1, -1, &rate), ATTNCL_ERR_ARGUMENT, "-1 steps taken");
    desc.kind = ATTNCL_RATE_LINEAR;
    ck_fails(attncl_schedule_rate(&desc, 1, 0, &rate), ATTNCL_ERR_ARGUMENT, "n_steps is 0");
    desc.warmup = -2;
    ck_fails(attncl_schedule_rate(&desc, 1, 0, &rate), ATTNCL_ERR_ARGUMENT, "warmup is -2");
    desc.warmup = 0;
    desc.n_steps = 5;
    desc.min_rate = -1;
    ck_fails(attncl_schedule_rate(&desc, 1, 0, &rate), ATTNCL_ERR_ARGUMENT, "min_rate is -1");
    desc.kind = ATTNCL_RATE_INVERSE_SQRT;
    ck_fails(attncl_schedule_rate(&desc, 1, 0, &rate), ATTNCL_ERR_ARGUMENT, "d_model is 0");
    desc.kind = (attncl_rate_schedule)9;
    ck_fails(attncl_schedule_rate(&desc, 1, 0, &rate), ATTNCL_ERR_ARGUMENT,
             "schedule 9 is unknown");
    ck_assert_double_eq(rate, 7);
}
