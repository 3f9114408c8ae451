// SPDX-License-Identifier: MIT
// Sums and averages in place against their reference (tests/ref/accumulate.c).

#include "ref/ref.h"
#include "support/op_test.h"

static void check(int n, double keep, double gain, bool has_x)
{
    const struct accumulate_fwd_params params = {keep, gain};
    struct host *into = host_random(1, DIMS(n)), *x = has_x ? host_random(2, DIMS(n)) : NULL;
    struct host *want = host_copy(into);

    ref_accumulate_fwd(want, x, keep, gain);
    ck_ok(run_op("accumulate_fwd", &params, HOSTS(into, x), NULL, 0));
    ck_near(into, want, 2 * 6e-8, 4 * 6e-8);
}

LOOP_TEST(matches_the_reference, 0, 5)
{
    static const int sizes[] = {1, 5, 16, 2100, 70001};

    check(sizes[_i], 1, 1, true);
    check(sizes[_i], 0.999, 1 - 0.999, true);
    check(sizes[_i], 0, 1, true);
    check(sizes[_i], 0, 0, false);
}

TEST(zeros_hide_what_was_there)
{
    const struct accumulate_fwd_params params = {0, 0};
    struct host *into = host_random(1, DIMS(37)), *want = host_new(ATTNCL_F32, DIMS(37));

    into->data[3] = NAN;
    into->data[36] = INFINITY;
    ck_ok(run_op("accumulate_fwd", &params, HOSTS(into), NULL, 0));
    ck_near(into, want, 0, 0);
}

// A guard that is not a number leaves every bit; any other, infinity too, changes nothing of the result.
LOOP_TEST(a_guard_that_is_not_a_number_stops_it, 0, 4)
{
    static const float guards[] = {NAN, -NAN, INFINITY, 0.5f};
    const struct accumulate_fwd_params params = {0.999, 1 - 0.999};
    struct host *into = host_random(1, DIMS(70001)), *x = host_random(2, DIMS(70001));
    struct host *guard = host_new(ATTNCL_F32, 0, NULL);

    into->data[3] = -0.0;
    into->data[70000] = INFINITY;
    x->data[5] = NAN;
    struct host *want = host_copy(into);
    guard->data[0] = (double)guards[_i];
    if (_i >= 2)
        ck_ok(run_op("accumulate_fwd", &params, HOSTS(want, x), NULL, 0));
    ck_ok(run_op("accumulate_fwd", &params, HOSTS(into, x, guard), NULL, 0));
    ck_assert_mem_eq(into->data, want->data, (size_t)want->count * sizeof want->data[0]);
}

TEST(nothing_to_add_to)
{
    const struct accumulate_fwd_params params = {1, 1};
    struct host *into = host_new(ATTNCL_F32, DIMS(0, 4)), *x = host_new(ATTNCL_F32, DIMS(0, 4));

    ck_ok(run_op("accumulate_fwd", &params, HOSTS(into, x), NULL, 0));
}

TEST(refusals)
{
    const struct accumulate_fwd_params params = {1, 1};
    struct host *x = host_random(1, DIMS(3)), *y = host_random(1, DIMS(4));
    struct host *ints = host_new(ATTNCL_I32, DIMS(3));

    ck_refused("accumulate_fwd", &params, HOSTS(x, y), ATTNCL_ERR_SHAPE,
               "value is [4], into is [3]");
    ck_refused("accumulate_fwd", &params, HOSTS(x, x, y), ATTNCL_ERR_SHAPE, "guard");
    ck_refused("accumulate_fwd", &params, HOSTS(x, ints), ATTNCL_ERR_DTYPE, "value is I32");
}
