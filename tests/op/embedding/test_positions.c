// SPDX-License-Identifier: MIT
// Positions against their reference (tests/ref/positions.c).

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/grad_test.h"

static const double half_ulp = 6e-8; // one rounding

static void check(struct host *x, struct host *table, int layout)
{
    const struct add_positions_fwd_params params = {layout};
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);

    ref_add_positions_fwd(x, table, layout, want);
    ck_op("add_positions_fwd", &params, HOSTS(x, table), HOSTS(want), half_ulp, 0);
}

TEST(matches_the_reference)
{
    for (int layout = ATTNCL_LAYOUT_TIME_FIRST; layout <= ATTNCL_LAYOUT_BATCH_FIRST; ++layout) {
        check(host_random(1, DIMS(5, 4, 37)), host_random(2, DIMS(9, 37)), layout);
        check(host_random(1, DIMS(5, 5, 3)), host_random(2, DIMS(5, 3)), layout);
        check(host_random(1, DIMS(1, 1, 1)), host_random(2, DIMS(1, 1)), layout);
        check(host_view(host_random(1, DIMS(3, 2, 20))), host_random(2, DIMS(3, 20)), layout);
    }
}

static void check_at(struct host *x, struct host *table, double position, int64_t expected)
{
    struct host *at = host_new(ATTNCL_I32, DIMS(1));
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);

    at->data[0] = position;
    ref_add_position_at_fwd(x, table, expected, want);
    ck_op("add_position_at_fwd", NULL, HOSTS(x, table, at), HOSTS(want), half_ulp, 0);
}

TEST(one_position_for_all_rows)
{
    struct host *x = host_random(1, DIMS(3, 37)), *table = host_random(2, DIMS(5, 37));

    for (int t = 0; t < 5; ++t)
        check_at(x, table, t, t);
    check_at(host_view(x), table, 2, 2);
    check_at(x, table, 5, 4); // outside: the nearest
    check_at(x, table, -1, 0);
}

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct add_positions_fwd_params *p = params;
    ref_add_positions_fwd(in[0], in[1], p->layout, out[0]);
}

// Linear: differences are the definition.  A table longer than the sequence, in both layouts.
TEST(gradient_meets_finite_differences)
{
    const struct add_positions_fwd_params tbc = {0}, btc = {1};
    struct host *x = host_random(4, DIMS(4, 3, 19)), *table = host_random(5, DIMS(6, 19));

    ck_gradients("add_positions_fwd", &tbc, HOSTS(x, table), 3, forward, 1e-6);
    ck_gradients("add_positions_fwd", &btc, HOSTS(x, table), 3, forward, 1e-6);
}

TEST(refusals)
{
    const struct add_positions_fwd_params tbc = {ATTNCL_LAYOUT_TIME_FIRST},
                                          btc = {ATTNCL_LAYOUT_BATCH_FIRST};
    const struct add_positions_fwd_params other = {2};
    struct host *x = host_new(ATTNCL_F32, DIMS(6, 4, 3)), *flat = host_new(ATTNCL_F32, DIMS(4, 3));
    struct host *table = host_new(ATTNCL_F32, DIMS(5, 3)), *wide = host_new(ATTNCL_F32, DIMS(5, 4));
    struct host *two = host_new(ATTNCL_I32, DIMS(2));

    ck_refused("add_positions_fwd", &tbc, HOSTS(x, table), ATTNCL_ERR_SHAPE,
               "x has T = 6, table has 5 positions");
    ck_ok(run_op("add_positions_fwd", &btc, HOSTS(x, table), HOSTS(x)));
    ck_refused("add_positions_fwd", &btc, HOSTS(x, wide), ATTNCL_ERR_SHAPE,
               "table has C = 4, x has C = 3");
    ck_refused("add_positions_fwd", &btc, HOSTS(flat, table), ATTNCL_ERR_SHAPE, "[4, 3]");
    ck_refused("add_positions_fwd", &other, HOSTS(x, table), ATTNCL_ERR_ARGUMENT, "layout 2");
    ck_refused("add_position_at_fwd", NULL, HOSTS(flat, table, two), ATTNCL_ERR_SHAPE,
               "position is [2]");
}
