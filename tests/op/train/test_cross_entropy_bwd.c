// SPDX-License-Identifier: MIT
// The gradient of cross entropy against its reference (tests/ref/cross_entropy_bwd.c) and against
// finite differences.

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/grad_test.h"

// Probabilities with errors of exp, a sum and a division; their difference from 1 is below 1.
static const double rtol = 3e-6, atol_each = 4e-7;

static void check(struct host *x, int reduction, int64_t pad, double smoothing)
{
    const struct cross_entropy_bwd_params params = {{reduction, pad, smoothing}};
    const bool each = reduction == ATTNCL_REDUCE_NONE;
    struct host *t = host_ints(5, 0, (int)x->dim[x->rank - 1], x->rank - 1, x->dim);
    struct host *dy = host_random(6, each ? t->rank : 0, t->dim);
    struct host *want = host_like(x);

    ref_cross_entropy_bwd(x, t, dy, reduction, pad, smoothing, want);
    ck_op("cross_entropy_bwd", &params, HOSTS(x, t, dy), HOSTS(want), rtol, 3 * atol_each);
}

LOOP_TEST(matches_the_reference, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    check(host_random(1, DIMS(3, 5, 7)), _i, -1, 0);
    check(host_random(2, DIMS(37, 19)), _i, 3, 0);
    check(host_uniform(3, -60, 60, DIMS(5, 301)), _i, -1, 0);
    check(host_uniform(3, -60, 60, DIMS(5, 64)), _i, -1, 0);
    check(host_uniform(3, -60, 60, DIMS(2, 8196)), _i, -1, 0);
    check(host_random(1, DIMS(3, 5, 7)), _i, -1, 0.1);
    check(host_random(2, DIMS(37, 19)), _i, 3, 1);
    check(host_uniform(3, -60, 60, DIMS(5, 64)), _i, -1, 0.3);
    check(host_uniform(3, -60, 60, DIMS(2, 8196)), _i, -1, 0.3);
}

TEST(all_padding_gives_zeros)
{
    const struct cross_entropy_bwd_params params = {{ATTNCL_REDUCE_MEAN, 0, 0.1}};
    struct host *x = host_random(7, DIMS(3, 5)), *t = host_ints(1, 0, 1, DIMS(3));
    struct host *dy = host_random(6, 0, NULL);

    ck_op("cross_entropy_bwd", &params, HOSTS(x, t, dy), HOSTS(host_like(x)), 0, 0);
}

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct cross_entropy_fwd_params *p = params;
    ref_cross_entropy_fwd(in[0], in[1], p->reduction, p->pad, p->smoothing, out[0]);
}

LOOP_TEST(meets_finite_differences, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    const struct cross_entropy_fwd_params params = {_i, 2, 0}, smooth = {_i, 2, 0.2};
    struct host *x = host_random(8, DIMS(6, 5)), *t = host_ints(9, 0, 5, DIMS(6));

    ck_gradients("cross_entropy_fwd", &params, HOSTS(x, t), 1, forward, 1e-5);
    ck_gradients("cross_entropy_fwd", &smooth, HOSTS(x, t), 1, forward, 1e-5);
}

TEST(refusals)
{
    const struct cross_entropy_bwd_params params = {{ATTNCL_REDUCE_NONE, -1, 0}};
    struct host *x = host_random(8, DIMS(6, 5)), *t = host_ints(9, 0, 5, DIMS(6));

    ck_refused("cross_entropy_bwd", &params, HOSTS(x, t, host_random(1, DIMS(5))), ATTNCL_ERR_SHAPE,
               "[5]");
}
