// SPDX-License-Identifier: MIT
// Kernel regression against its reference (tests/ref/attention_pooling.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

enum { GAUSSIAN, BOXCAR, CONSTANT, EPANECHIKOV, N_KINDS };

// A weight's exponent, known to u = 6e-8 times itself, counts up to where the weight is e^-20: 20
// u. Sums of n terms of one sign in blocks of 64, the quotient: at most (64 + n / 64) u, 80 u here.
static const double relative = 100 * 6e-8, absolute = 100 * 6e-8;

static void check(int kind, double sigma, struct host *x, struct host *y, struct host *z)
{
    struct attention_pooling_fwd_params params = {kind, (float)sigma, true};
    struct host *got = host_new(ATTNCL_F32, DIMS(z->count)), *want = host_like(got);
    struct host *weights = host_new(ATTNCL_F32, DIMS(x->count, z->count));
    struct host *want_weights = host_like(weights);

    ref_attention_pooling_fwd(kind, (float)sigma, x, y, z, want, want_weights);
    ck_ok(run_op("attention_pooling_fwd", &params, HOSTS(x, y, z), HOSTS(got, weights)));
    ck_near(got, want, relative, absolute);
    ck_near(weights, want_weights, relative, absolute);
    params.want_weights = false;
    ck_ok(run_op("attention_pooling_fwd", &params, HOSTS(x, y, z), HOSTS(got)));
    ck_near(got, want, relative, absolute);
}

LOOP_TEST(matches_the_reference, 0, N_KINDS)
{
    static const int sizes[][2] = {{1, 1}, {3, 2}, {40, 50}, {65, 16}, {130, 33}, {1000, 5}};

    for (unsigned i = 0; i < COUNT_OF(sizes); ++i) {
        struct host *x = host_uniform(i, 0, 5, DIMS(sizes[i][0]));
        struct host *y = host_random(10 + i, DIMS(sizes[i][0]));
        struct host *z = host_uniform(20 + i, -1, 6, DIMS(sizes[i][1]));
        check(_i, 1, x, y, z);
        if (_i == GAUSSIAN) {
            check(_i, 0.1, x, y, z);
            check(_i, -20, x, y, z);
        }
    }
}

// A query far from all keys takes the nearest with the Gaussian, none with a support.
LOOP_TEST(far_queries_are_well_defined, 0, N_KINDS)
{
    const double keys[] = {1e30, -1e30, 0, 5}, queries[] = {3e38, -3e38, 1e4, 0, 1e30};
    struct host *x = host_new(ATTNCL_F32, DIMS(4)), *y = host_random(2, DIMS(4));
    struct host *z = host_new(ATTNCL_F32, DIMS(5));

    host_set(x, keys);
    host_set(z, queries);
    host_scale(x, 1); // to floats
    host_scale(z, 1);
    check(_i, 1, x, y, z);
    if (_i == GAUSSIAN)
        check(_i, 1e-20, x, y, z);
}

TEST(the_boxcar_is_open)
{
    const double keys[] = {0, 2}, queries[] = {1, 0.999, -1};
    struct host *x = host_new(ATTNCL_F32, DIMS(2)), *y = host_random(2, DIMS(2));
    struct host *z = host_new(ATTNCL_F32, DIMS(3));

    host_set(x, keys);
    host_set(z, queries);
    host_scale(z, 1);
    check(BOXCAR, 1, x, y, z);
}

LOOP_TEST(empty_is_fine, 0, N_KINDS)
{
    struct host *none = host_new(ATTNCL_F32, DIMS(0));

    check(_i, 1, none, none, none);
    check(_i, 1, none, none, host_random(1, DIMS(3)));
    check(_i, 1, host_random(1, DIMS(3)), host_random(2, DIMS(3)), none);
}

TEST(refusals)
{
    struct attention_pooling_fwd_params params = {GAUSSIAN, 1, false};
    struct host *x = host_random(1, DIMS(3)), *y = host_random(1, DIMS(4));
    struct host *table = host_random(1, DIMS(3, 1));

    ck_refused("attention_pooling_fwd", &params, HOSTS(x, y, x), ATTNCL_ERR_SHAPE,
               "y_train is [4], x_train is [3]");
    ck_refused("attention_pooling_fwd", &params, HOSTS(x, x, table), ATTNCL_ERR_SHAPE,
               "x_val [3, 1]");
    params.sigma = 0;
    ck_refused("attention_pooling_fwd", &params, HOSTS(x, x, x), ATTNCL_ERR_ARGUMENT, "sigma is 0");
    params.kind = 4;
    ck_refused("attention_pooling_fwd", &params, HOSTS(x, x, x), ATTNCL_ERR_ARGUMENT,
               "kernel is 4");
}
