// SPDX-License-Identifier: MIT
// Gradient descent with momentum against its reference (tests/ref/sgd.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// Six roundings of numbers up to some times the elements.
static const double relative = 1e-6, absolute = 2e-6;

static const struct variant {
    struct ref_sgd s;
    int64_t taken;
    int count;
} variants[] = {
    {{.learning_rate = 0.1}, 0, 1},
    {{.learning_rate = 0.1, .weight_decay = 0.3}, 5, 37},
    {{.learning_rate = 0.1, .momentum = 0.9}, 0, 37},
    {{.learning_rate = 0.1, .momentum = 0.9}, 1, 2100},
    {{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.1}, 0, 16},
    {{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.1}, 7, 70001},
    {{.learning_rate = 0.1, .momentum = 0.5, .weight_decay = 0.1, .nesterov = 1}, 0, 37},
    {{.learning_rate = 0.1, .momentum = 0.5, .weight_decay = 0.1, .nesterov = 1}, 3, 37},
};

// The rate as a constant and, where `given`, as a scalar.
static struct host *rates_of(const struct ref_sgd *s, int64_t taken, bool given)
{
    const struct sgd_rates_fwd_params params = {given ? 0 : s->learning_rate, s->momentum,
                                                s->dampening};
    struct host *step = host_new(ATTNCL_I32, 0, NULL), *rate = host_new(ATTNCL_F32, 0, NULL);
    struct host *rates = host_new(ATTNCL_F32, DIMS(3));

    step->data[0] = (double)taken;
    rate->data[0] = s->learning_rate;
    ck_ok(run_op("sgd_rates_fwd", &params, HOSTS(step, given ? rate : NULL), HOSTS(rates)));
    return rates;
}

// In new arrays, and bit by bit the same in place.
TABLE_TEST(matches_the_reference, variants)
{
    const struct variant *x = &variants[_i];
    const struct sgd_step_fwd_params params = {x->s.momentum, x->s.weight_decay, x->s.nesterov};
    const bool has_buffer = x->s.momentum != 0;
    struct host *p = host_random(1, DIMS(x->count)), *g = host_random(2, DIMS(x->count));
    struct host *b = has_buffer ? host_random(3, DIMS(x->count)) : NULL;
    struct host *p_new = host_like(p), *b_new = host_like(p);
    struct host *rates = rates_of(&x->s, x->taken, _i % 2);

    ck_ok(run_op("sgd_step_fwd", &params, HOSTS(p, g, rates, b),
                 (struct host *const[]){p_new, b_new}, has_buffer ? 2 : 1));
    struct host *const in_place[] = {host_copy(p), g, rates, has_buffer ? host_copy(b) : NULL};
    ref_sgd_step(&x->s, x->taken, p, g, b);
    ck_near(p_new, p, relative, absolute);
    if (has_buffer)
        ck_near(b_new, b, relative, absolute);

    ck_ok(run_op("sgd_update_fwd", &params, in_place, 4, NULL, 0));
    ck_near(in_place[0], p_new, 0, 0);
    if (has_buffer)
        ck_near(in_place[3], b_new, 0, 0);
}

// As PyTorch, which makes the buffer at the first step that it takes.
TEST(without_a_buffer_every_step_is_a_first_one)
{
    const struct ref_sgd s = {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.4};
    const struct sgd_step_fwd_params params = {s.momentum, 0, 0};
    struct host *p = host_random(1, DIMS(37)), *g = host_random(2, DIMS(37));
    struct host *p_new = host_like(p), *b_new = host_like(p), *b = host_like(p);

    ck_ok(
        run_op("sgd_step_fwd", &params, HOSTS(p, g, rates_of(&s, 4, false)), HOSTS(p_new, b_new)));
    ref_sgd_step(&s, 0, p, g, b);
    ck_near(p_new, p, relative, absolute);
    ck_near(b_new, b, relative, absolute);
}

TEST(the_first_step_hides_what_the_buffer_holds)
{
    const struct ref_sgd s = {.learning_rate = 0.1, .momentum = 0.9};
    const struct sgd_step_fwd_params params = {s.momentum, 0, 0};
    struct host *p = host_random(1, DIMS(5)), *g = host_random(2, DIMS(5));
    struct host *p_new = host_like(p), *b_new = host_like(p), *b = host_like(p);

    b->data[2] = NAN;
    ck_ok(run_op("sgd_step_fwd", &params, HOSTS(p, g, rates_of(&s, 0, false), b),
                 HOSTS(p_new, b_new)));
    ck_near(b_new, g, 0, 0);
}

TEST(a_rate_that_is_not_a_number_changes_nothing)
{
    const struct ref_sgd s = {.learning_rate = NAN, .momentum = 0.9};
    const struct sgd_step_fwd_params params = {s.momentum, 0.1, 1}, none = {0, 0.1, 0};
    struct host *x = host_random(1, DIMS(37)), *g = host_random(2, DIMS(37));
    struct host *p = host_copy(x), *b = host_copy(x);

    g->data[36] = NAN;
    ck_ok(run_op("sgd_update_fwd", &params, HOSTS(p, g, rates_of(&s, 0, true), b), NULL, 0));
    ck_ok(run_op("sgd_update_fwd", &none, HOSTS(p, g, rates_of(&s, 0, true)), NULL, 0));
    ck_near(p, x, 0, 0);
    ck_near(b, x, 0, 0);
}

// As torch.optim.SGD: the elements whose gradient, parameter or buffer is so; none beside them.
TABLE_TEST(special_elements_stay_theirs, variants)
{
    const struct variant *v = &variants[_i];
    const struct sgd_step_fwd_params params = {v->s.momentum, v->s.weight_decay, v->s.nesterov};
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    struct host *b = v->s.momentum != 0 ? host_random(3, DIMS(37)) : NULL;
    struct host *x[] = {host_random(1, DIMS(37)), host_random(2, DIMS(37)), b};

    for (int i = 0; i < 9; ++i)
        if (x[i / 3])
            x[i / 3]->data[28 + i] = specials[i % 3];
    struct host *const want[] = {host_copy(x[0]), host_copy(x[1]), b ? host_copy(b) : NULL};
    ck_ok(run_op("sgd_update_fwd", &params, HOSTS(x[0], x[1], rates_of(&v->s, v->taken, true), b),
                 NULL, 0));
    ref_sgd_step(&v->s, v->taken, want[0], want[1], want[2]);
    for (int k = 0; k < 3; k += 2)
        for (int i = 0; x[k] && i < 37; ++i) {
            const double got = x[k]->data[i], expected = want[k]->data[i];
            ck_assert_msg(isnan(expected)   ? isnan(got)
                          : isinf(expected) ? got == expected
                                            : fabs(got - expected) < 1e-5,
                          "[%d] of %d is %g, expected %g", i, k, got, expected);
        }
}

TEST(refusals)
{
    const struct sgd_step_fwd_params none = {0, 0, 0}, nesterov = {0, 0, 1}, momentum = {0.9, 0, 0};
    const struct sgd_rates_fwd_params negative = {1, -0.5, 0};
    struct host *x = host_random(1, DIMS(3)), *y = host_random(1, DIMS(4));
    struct host *step = host_new(ATTNCL_I32, 0, NULL);

    ck_refused("sgd_rates_fwd", &negative, HOSTS(step), ATTNCL_ERR_ARGUMENT, "momentum is -0.5");
    ck_refused("sgd_rates_fwd", &none, HOSTS(step, x), ATTNCL_ERR_SHAPE, "learning_rate");
    ck_refused("sgd_step_fwd", &none, HOSTS(x, y, x), ATTNCL_ERR_SHAPE,
               "grad is [4], param is [3]");
    ck_refused("sgd_step_fwd", &none, HOSTS(x, x, y), ATTNCL_ERR_SHAPE,
               "rates is [4], expected [3]");
    ck_refused("sgd_step_fwd", &momentum, HOSTS(x, x, x, y), ATTNCL_ERR_SHAPE,
               "momentum_buffer is [4], param is [3]");
    ck_refused("sgd_step_fwd", &nesterov, HOSTS(x, x, x), ATTNCL_ERR_ARGUMENT,
               "nesterov needs momentum");
    ck_refused("sgd_update_fwd", &momentum, HOSTS(x, x, x), ATTNCL_ERR_ARGUMENT,
               "momentum_buffer is missing");
    ck_refused("sgd_update_fwd", &none, HOSTS(x, x, x, x), ATTNCL_ERR_ARGUMENT,
               "momentum is 0: it has no buffer");
}
