// SPDX-License-Identifier: MIT
// Sums and products against their reference (tests/ref/binary.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

static void check(struct host *a, struct host *b)
{
    struct host *want = host_new(ATTNCL_F32, a->rank, a->dim);
    const double half_ulp = 6e-8; // one rounding

    ref_add_fwd(a, b, want);
    ck_op("add_fwd", NULL, HOSTS(a, b), HOSTS(want), half_ulp, 0);
    ref_mul_fwd(a, b, want);
    ck_op("mul_fwd", NULL, HOSTS(a, b), HOSTS(want), half_ulp, 2e-38);
}

TEST(match_the_reference)
{
    check(host_random(1, 0, NULL), host_random(2, 0, NULL));
    check(host_random(1, DIMS(3, 5)), host_random(2, DIMS(3, 5)));
    check(host_random(1, DIMS(2, 1031)), host_random(2, DIMS(2, 1031)));
    check(host_view(host_random(1, DIMS(4, 6))), host_random(2, DIMS(4, 6)));
    check(host_new(ATTNCL_F32, DIMS(0, 3)), host_new(ATTNCL_F32, DIMS(0, 3)));
}

TEST(special_values_follow_arithmetic)
{
    struct host *a = host_new(ATTNCL_F32, DIMS(4)), *b = host_like(a), *got = host_like(a);
    const double left[] = {INFINITY, NAN, 3e38, -INFINITY}, right[] = {1, 1, 3e38, INFINITY};

    host_set(a, left);
    host_set(b, right);
    ck_ok(run_op("add_fwd", NULL, HOSTS(a, b), HOSTS(got)));
    ck_assert(got->data[0] == INFINITY && isnan(got->data[1]));
    ck_assert(got->data[2] == INFINITY && isnan(got->data[3]));
}

TEST(refusals)
{
    struct host *a = host_new(ATTNCL_F32, DIMS(2, 3)), *b = host_new(ATTNCL_F32, DIMS(3, 2));
    struct host *ints = host_new(ATTNCL_I32, DIMS(2, 3));

    ck_refused("add_fwd", NULL, HOSTS(a, b), ATTNCL_ERR_SHAPE, "a is [2, 3], b is [3, 2]");
    ck_refused("mul_fwd", NULL, HOSTS(a, ints), ATTNCL_ERR_DTYPE, "b is I32");
}
