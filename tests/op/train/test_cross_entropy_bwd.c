// SPDX-License-Identifier: MIT
// What the gradient of cross entropy refuses; test_cross_entropy.c has the rest.

#include "attncl/kinds.h"
#include "support/op_test.h"

TEST(refusals)
{
    const struct cross_entropy_bwd_params params = {{ATTNCL_REDUCE_NONE, -1, 0}};
    struct host *x = host_random(8, DIMS(6, 5)), *t = host_ints(9, 0, 5, DIMS(6));

    ck_refused("cross_entropy_bwd", &params, HOSTS(x, t, host_random(1, DIMS(5))), ATTNCL_ERR_SHAPE,
               "[5]");
}
