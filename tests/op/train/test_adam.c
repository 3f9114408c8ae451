// SPDX-License-Identifier: MIT
// Adam's steps against their reference (tests/ref/adam.c).

#include <math.h>
#include <string.h>

#include "ref/ref.h"
#include "support/op_test.h"

// A step is some 15 roundings, a root, a quotient and expm1 of 3 ulp each, relative to the step,
// which is of the size of the rate, and one rounding of p.
static const double relative = 3e-6, absolute = 3e-6;

static const struct variant {
    struct ref_adam a;
    int64_t taken;
    int count, amsgrad;
} variants[] = {
#define BETAS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
    {{.learning_rate = 0.01, BETAS, .optimized = 1}, 0, 35, 0},
    {{.learning_rate = 0.005, BETAS}, 0, 1, 0},
    {{.learning_rate = 0.005, BETAS}, 1000000000, 16, 0},
    {{.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3}, 7, 2100, 1},
    {{.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .optimized = 1}, 7, 37, 1},
    {{.learning_rate = 0.1, .eps = 1e-3}, 3, 37, 0},
    {{.learning_rate = 0.1, BETAS, .weight_decay = 0.3}, 3, 37, 0},
    {{.learning_rate = 0.1, BETAS, .weight_decay = 0.3, .decoupled = 1}, 3, 37, 0},
    {{.learning_rate = 0.1, BETAS, .weight_decay = 0.3, .decoupled = 1, .now = 0.02}, 3, 37, 0},
    {{.learning_rate = 0.1,
      BETAS,
      .weight_decay = 0.3,
      .decoupled = 1,
      .scheduled_decay = 1,
      .now = 0.02},
     3,
     37,
     0},
    {{.learning_rate = 0.1, BETAS, .weight_decay = 0.3, .decoupled = 1, .scheduled_decay = 1},
     3,
     37,
     1},
    {{.now = 0.02, BETAS, .optimized = 1}, 400, 37, 0},
};

static attncl_status rates_of(const struct ref_adam *a, int64_t taken, struct host *rates)
{
    const double decay = a->decoupled ? a->weight_decay : 0;
    const struct adam_rates_fwd_params params = {
        .learning_rate = a->learning_rate,
        .beta1 = a->beta1,
        .beta2 = a->beta2,
        .optimized = a->optimized,
        .shrink = a->scheduled_decay ? 0 : a->learning_rate * decay,
        .scheduled_decay = a->scheduled_decay ? decay : 0,
    };
    struct host *step = host_new(ATTNCL_I32, 0, NULL), *now = host_new(ATTNCL_F32, 0, NULL);

    step->data[0] = (double)taken;
    now->data[0] = a->now;
    return run_op("adam_rates_fwd", &params, HOSTS(step, a->now != 0 ? now : NULL), HOSTS(rates));
}

// In new arrays, and bit by bit the same in place.
TABLE_TEST(matches_the_reference, variants)
{
    const struct variant *x = &variants[_i];
    const struct ref_adam *a = &x->a;
    const struct adam_step_fwd_params params = {
        .beta1 = a->beta1,
        .beta2 = a->beta2,
        .eps = a->eps,
        .decay = a->decoupled ? 0 : a->weight_decay,
    };
    struct host *p = host_random(1, DIMS(x->count)), *g = host_random(2, DIMS(x->count));
    struct host *m = host_random(3, DIMS(x->count)), *v = host_uniform(4, 0.1, 2, DIMS(x->count));
    struct host *largest = x->amsgrad ? host_uniform(5, 0.1, 2, DIMS(x->count)) : NULL;
    struct host *p_new = host_like(p), *m_new = host_like(p), *v_new = host_like(p);
    struct host *largest_new = host_like(p), *rates = host_new(ATTNCL_F32, DIMS(3));

    ck_ok(rates_of(a, x->taken, rates));
    ck_ok(run_op("adam_step_fwd", &params, HOSTS(p, g, m, v, rates, largest),
                 (struct host *const[]){p_new, m_new, v_new, largest_new}, x->amsgrad ? 4 : 3));
    struct host *const in_place[] = {host_copy(p), g,     host_copy(m),
                                     host_copy(v), rates, x->amsgrad ? host_copy(largest) : NULL};
    ref_adam_step(a, x->taken, p, g, m, v, largest);
    ck_near(p_new, p, relative, absolute);
    ck_near(m_new, m, relative, absolute);
    ck_near(v_new, v, relative, absolute);
    if (x->amsgrad)
        ck_near(largest_new, largest, relative, absolute);

    ck_ok(run_op("adam_update_fwd", &params, in_place, 6, NULL, 0));
    ck_near(in_place[0], p_new, 0, 0);
    ck_near(in_place[2], m_new, 0, 0);
    ck_near(in_place[3], v_new, 0, 0);
    if (x->amsgrad)
        ck_near(in_place[5], largest_new, 0, 0);
}

// 1 - 0.999^t at t = 1 keeps its digits.
TEST(first_rates_are_accurate)
{
    const struct ref_adam a = {.learning_rate = 1, .beta1 = 0.9999, .beta2 = 0.9999};
    struct host *rates = host_new(ATTNCL_F32, DIMS(3)), *want = host_like(rates);

    want->data[0] = 1 / (1 - 0.9999);
    want->data[1] = 1 / sqrt(1 - 0.9999);
    ck_ok(rates_of(&a, 0, rates));
    ck_near(rates, want, 8 * 6e-8, 0);
}

// In place: elements on both sides of the end of a vector, with a gradient that is not a number.
LOOP_TEST(a_rate_that_is_not_a_number_changes_nothing, 0, 2)
{
    const struct ref_adam a = {.learning_rate = 0.1,
                               BETAS,
                               .weight_decay = 0.3,
                               .decoupled = 1,
                               .scheduled_decay = 1,
                               .now = NAN};
    const struct adam_step_fwd_params params = {.beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8};
    struct host *x = host_uniform(1, 0.5, 1, DIMS(37)), *rates = host_new(ATTNCL_F32, DIMS(3));
    struct host *g = host_random(2, DIMS(37)), *p = host_copy(x), *m = host_copy(x);
    struct host *v = host_copy(x), *largest = _i ? host_copy(x) : NULL;

    g->data[36] = NAN;
    ck_ok(rates_of(&a, 3, rates));
    ck_ok(run_op("adam_update_fwd", &params, HOSTS(p, g, m, v, rates, largest), NULL, 0));
    ck_near(p, x, 0, 0);
    ck_near(m, x, 0, 0);
    ck_near(v, x, 0, 0);
    if (largest)
        ck_near(largest, x, 0, 0);
}

// As torch.optim.Adam: the elements whose gradient, parameter or mean is so, for good; none beside them.  A square
// beyond the largest float is infinite, and its parameter stays.
LOOP_TEST(special_elements_stay_theirs, 0, 2)
{
    const struct ref_adam a = {.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    const struct adam_step_fwd_params params = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    enum { BEGIN = 30, HUGE_AT = 35 };
    struct host *p = host_uniform(1, 0.5, 1, DIMS(37)), *rates = host_new(ATTNCL_F32, DIMS(3));
    struct host *x[] = {p, host_random(2, DIMS(37)), host_copy(p), host_copy(p), NULL, NULL};
    struct host *largest = _i ? host_copy(p) : NULL;

    ck_ok(rates_of(&a, 3, rates));
    for (int i = 0; i < 3; ++i)
        x[1]->data[BEGIN + i] = specials[i]; // the gradient
    for (int i = 0; i < 2; ++i)
        x[0]->data[BEGIN + 3 + i] = specials[i]; // the parameter
    x[1]->data[HUGE_AT] = 3e38;
    struct host *const want[] = {host_copy(x[0]), host_copy(x[1]), host_copy(x[2]), host_copy(x[3]),
                                 _i ? host_copy(largest) : NULL};
    ck_ok(
        run_op("adam_update_fwd", &params, HOSTS(x[0], x[1], x[2], x[3], rates, largest), NULL, 0));
    ref_adam_step(&a, 3, want[0], want[1], want[2], want[3], want[4]);
    for (int i = 0; i < 37; ++i) {
        const double got = x[0]->data[i], expected = want[0]->data[i];
        if (i == HUGE_AT)
            ck_assert(got == p->data[i] && isinf(x[3]->data[i]));
        else if (isfinite(expected))
            ck_assert(fabs(got - expected) < 1e-5);
        else
            ck_assert(isnan(expected) ? isnan(got) : got == expected);
        if (i != HUGE_AT && !isfinite(want[3]->data[i]))
            ck_assert(!isfinite(x[3]->data[i]) && (!_i || !isfinite(largest->data[i])));
    }
}

TEST(refusals)
{
    const struct ref_adam bad = {.learning_rate = 1, .beta1 = 1, .beta2 = 0.5};
    const struct adam_step_fwd_params params = {.beta1 = 0.9, .beta2 = 0.9};
    struct host *x = host_random(1, DIMS(3)), *y = host_random(1, DIMS(4));
    struct host *rates = host_random(1, DIMS(3));

    ck_fails(rates_of(&bad, 0, rates), ATTNCL_ERR_ARGUMENT, "betas are 1 and 0.5");
    ck_refused("adam_step_fwd", &params, HOSTS(x, y, x, x, rates), ATTNCL_ERR_SHAPE,
               "grad is [4], param is [3]");
    ck_refused("adam_step_fwd", &params, HOSTS(x, x, x, x, y), ATTNCL_ERR_SHAPE,
               "rates is [4], expected [3]");
    ck_refused("adam_step_fwd", &params, HOSTS(x, x, x, x, rates, y), ATTNCL_ERR_SHAPE,
               "max_exp_avg_sq is [4], param is [3]");
}
