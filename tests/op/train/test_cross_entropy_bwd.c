// SPDX-License-Identifier: MIT
// What the gradient of cross entropy refuses; test_cross_entropy.c has the rest.

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_test.h"

TEST(refusals)
{
    const struct cross_entropy_bwd_params params = {{ATTNCL_REDUCE_NONE, -1, 0}};
    struct host *x = host_random(8, DIMS(6, 5)), *t = host_ints(9, 0, 5, DIMS(6));

    ck_refused("cross_entropy_bwd", &params, HOSTS(x, t, host_random(1, DIMS(5))), ATTNCL_ERR_SHAPE,
               "[5]");
}

// A target outside the row counts as its nearest column.
TEST(targets_outside)
{
    const struct cross_entropy_bwd_params params = {{ATTNCL_REDUCE_SUM, -1, 0}};
    struct host *x = host_random(8, DIMS(4, 5)), *dy = host_random(1, DIMS(1)),
                *want = host_like(x);
    struct host *t = host_new(ATTNCL_I32, DIMS(4));
    const double targets[] = {-1, 5, 2147483647, 2}, nearest[] = {0, 4, 4, 2};

    host_set(t, nearest);
    ref_cross_entropy_bwd(x, t, dy, ATTNCL_REDUCE_SUM, -1, 0, want);
    host_set(t, targets);
    dy->rank = 0;
    ck_op("cross_entropy_bwd", &params, HOSTS(x, t, dy), HOSTS(want), 0, 1e-6);
}
