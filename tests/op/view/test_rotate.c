// SPDX-License-Identifier: MIT
// Rotated pairs against their reference (tests/ref/rotate.c).

#include "ref/ref.h"
#include "support/grad_test.h"

// Three roundings of values of the size of the two products.
static const double relative = 2e-7, absolute = 1e-6;

static void check(struct host *x, int64_t width)
{
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);
    struct host *table = host_random(9, DIMS(2, width));

    ref_rotate_fwd(x, table, want);
    ck_op("rotate_fwd", NULL, HOSTS(x, table), HOSTS(want), relative, absolute);
}

LOOP_TEST(matches_the_reference, 0, 5)
{
    // A pair, less than a vector, one, a ragged tail, several work-groups.
    static const int64_t widths[] = {2, 6, 16, 38, 514};

    check(host_random(1, DIMS(widths[_i])), widths[_i]);
    check(host_random(1, DIMS(3, 5, widths[_i])), widths[_i]);
    check(host_view(host_random(2, DIMS(7, widths[_i]))), widths[_i]);
}

TEST(empty_is_fine)
{
    check(host_new(ATTNCL_F32, DIMS(0, 4)), 4);
    check(host_new(ATTNCL_F32, DIMS(3, 0)), 0);
}

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_rotate_fwd(in[0], in[1], out[0]);
}

// Linear in x: differences are the definition.  Several rows, a ragged tail.
TEST(gradient_meets_finite_differences)
{
    struct host *x = host_random(4, DIMS(5, 38)), *table = host_random(5, DIMS(2, 38));

    ck_gradients("rotate_fwd", NULL, HOSTS(x, table), 1, forward, 1e-6);
}

TEST(refusals)
{
    struct host *x = host_random(1, DIMS(3, 5)), *table = host_random(1, DIMS(2, 5));

    ck_refused("rotate_fwd", NULL, HOSTS(x, table), ATTNCL_ERR_SHAPE,
               "x is [3, 5], its last axis must be even");
    x = host_random(1, DIMS(3, 4));
    ck_refused("rotate_fwd", NULL, HOSTS(x, table), ATTNCL_ERR_SHAPE,
               "the table is [2, 5], expected [2, 4]");
    x = host_random(1, 0, NULL);
    ck_refused("rotate_fwd", NULL, HOSTS(x, table), ATTNCL_ERR_SHAPE, "scalar");
    x = host_ints(1, 0, 3, DIMS(3, 4));
    ck_refused("rotate_fwd", NULL, HOSTS(x, table), ATTNCL_ERR_DTYPE, "x is I32");
}
