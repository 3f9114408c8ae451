// SPDX-License-Identifier: MIT
// Split-K reduction: the sum of partial results, against its reference.
// Reference: tests/support/fused_step_test.c.

#include <math.h>

#include "support/fused_step_test.h"

static void check(int64_t m, int64_t d, int64_t n_partials, bool biased)
{
    const struct stream s = stream_make(7, m, d, n_partials);
    struct host *got = host_like(s.x);

    ck_ok(run_op("split_k_reduce_fwd", NULL, HOSTS(s.partials, biased ? s.bias : NULL, s.x),
                 HOSTS(got)));
    for (int64_t i = 0; i < got->count; ++i) {
        const double want = s.reduced->data[i] - (biased ? 0 : s.bias->data[i % d]);
        double size = fabs(s.x->data[i]) + fabs(s.bias->data[i % d]);
        for (int64_t p = 0; p < n_partials; ++p)
            size += fabs(s.partials->data[p * m * d + i]);
        ck_assert_msg(fabs(got->data[i] - want) <= (double)(n_partials + 2) * 6e-8 * size,
                      "element %lld: %.9g, want %.9g", (long long)i, got->data[i], want);
    }
}

TEST(matches_the_reference)
{
    check(1, 1, 1, true);
    check(3, 5, 2, false);
    check(2, 48, 4, true);
    check(1, 70, 16, true);
    check(5, 16, 3, false);
}

TEST(refusals)
{
    struct host *partials = host_random(1, DIMS(2, 3, 5)), *x = host_random(2, DIMS(3, 5));
    struct host *wide = host_random(3, DIMS(3, 6)), *flat = host_random(4, DIMS(2, 3));

    ck_refused("split_k_reduce_fwd", NULL, HOSTS(partials, NULL, wide), ATTNCL_ERR_SHAPE,
               "partials are [2, 3, 5], residual is [3, 6]");
    ck_refused("split_k_reduce_fwd", NULL, HOSTS(flat, NULL, x), ATTNCL_ERR_SHAPE, "[2, 3]");
    ck_refused("split_k_reduce_fwd", NULL, HOSTS(partials, host_random(5, DIMS(4)), x),
               ATTNCL_ERR_SHAPE, "partials are [2, 3, 5], bias is [4]");
}
