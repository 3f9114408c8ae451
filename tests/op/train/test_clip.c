// SPDX-License-Identifier: MIT
// Clipping by norm and by value against its reference (tests/ref/clip.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// A sum of terms of one sign over blocks of 64, their sums, lanes and work-groups: 300 additions in
// a row at most, each half of 2^-23, and half of that in a root.  Measured: 1e-7.
static const double relative = 300 * 6e-8 / 2;

// Norm and factor of arrays, one after another.
static void norm_of(struct host *const *x, int n, double max_norm, int style, struct host *total,
                    struct host *factor)
{
    const struct clip_factor_fwd_params params = {max_norm, style};
    struct host *sums = NULL;

    for (int i = 0; i < n; ++i) {
        struct host *next = host_new(ATTNCL_F32, DIMS(3));
        ck_ok(run_op("sum_squares_fwd", NULL, HOSTS(x[i], sums), HOSTS(next)));
        sums = next;
    }
    ck_ok(run_op("clip_factor_fwd", &params, HOSTS(sums), HOSTS(total, factor)));
}

static void check(struct host *const *x, int n, double max_norm, int style)
{
    struct host *total = host_new(ATTNCL_F32, 0, NULL), *factor = host_like(total);
    struct host *want = host_like(total);

    norm_of(x, n, max_norm, style, total, factor);
    want->data[0] = ref_norm(x, n);
    ck_near(total, want, relative, 0);
    want->data[0] = ref_clip_factor(want->data[0], (float)max_norm, style);
    ck_near(factor, want, relative, 0);

    struct host *y = host_like(x[0]), *want_y = host_like(x[0]);
    for (int64_t i = 0; i < y->count; ++i)
        want_y->data[i] = x[0]->data[i] * factor->data[0];
    ck_op("scale_by_fwd", NULL, HOSTS(x[0], factor), HOSTS(want_y), 6e-8, 1e-38);
}

TEST(matches_the_reference)
{
    struct host *x[] = {host_random(1, DIMS(7, 5)),       host_random(2, DIMS(1)),
                        host_random(3, DIMS(3, 1031)),    host_random(4, 0, NULL),
                        host_new(ATTNCL_F32, DIMS(0, 4)), host_random(5, DIMS(70001))};

    for (int style = 0; style < 2; ++style) {
        check(x, 6, 1, style);
        check(x, 1, 1000, style);
        check(x + 1, 1, 0, style);
        check(x + 5, 1, 3, style);
    }
}

// Squares that no float holds, and none at all.
LOOP_TEST(no_size_is_too_much, 0, 5)
{
    static const double sizes[] = {1e30, 1e19, 1e-12, 1e-25, 0};
    struct host *x[] = {host_random(1, DIMS(130))};

    host_scale(x[0], sizes[_i]);
    check(x, 1, 1, 0);
    check(x, 1, 1, 1);
}

TEST(not_a_number_is_not_hidden)
{
    struct host *x[] = {host_random(1, DIMS(130))}, *total = host_new(ATTNCL_F32, 0, NULL);
    struct host *factor = host_like(total);

    x[0]->data[77] = NAN;
    norm_of(x, 1, 1, 0, total, factor);
    ck_assert(isnan(total->data[0]) && isnan(factor->data[0]));
    norm_of(x, 1, 1, 1, total, factor); // EXACT: NaN is not above 1
    ck_assert(isnan(total->data[0]) && factor->data[0] == 1);
    x[0]->data[77] = -INFINITY;
    for (int style = 0; style < 2; ++style) {
        norm_of(x, 1, 1, style, total, factor);
        ck_assert(total->data[0] == INFINITY && factor->data[0] == 0);
    }
}

TEST(elements_are_clamped)
{
    const struct clamp_fwd_params params = {0.5}, none = {0};
    struct host *x = host_random(1, DIMS(3, 701)), *want = host_like(x);

    x->data[3] = INFINITY;
    x->data[4] = -INFINITY;
    for (int64_t i = 0; i < x->count; ++i)
        want->data[i] = x->data[i] > 0.5 ? 0.5 : x->data[i] < -0.5 ? -0.5 : x->data[i];
    ck_op("clamp_fwd", &params, HOSTS(x), HOSTS(want), 0, 0);
    x->data[5] = NAN;
    ck_ok(run_op("clamp_fwd", &params, HOSTS(x), HOSTS(want)));
    ck_assert(isnan(want->data[5]));
    ck_op("clamp_fwd", &none, HOSTS(host_random(1, DIMS(5))), HOSTS(host_new(ATTNCL_F32, DIMS(5))),
          0, 0);
}

TEST(refusals)
{
    const struct clamp_fwd_params negative = {-1};
    struct clip_factor_fwd_params params = {-1, 0};
    struct host *x = host_random(1, DIMS(3)), *y = host_random(1, DIMS(4));

    ck_refused("clip_factor_fwd", &params, HOSTS(x), ATTNCL_ERR_ARGUMENT, "max_norm is -1");
    ck_refused("sum_squares_fwd", NULL, HOSTS(x, y), ATTNCL_ERR_SHAPE, "sums is [4], expected [3]");
    ck_refused("clamp_fwd", &negative, HOSTS(x), ATTNCL_ERR_ARGUMENT, "max_value is -1");
    ck_refused("scale_by_fwd", NULL, HOSTS(x, y), ATTNCL_ERR_SHAPE, "factor [4]");
}
