// SPDX-License-Identifier: MIT
// Activations against their reference (tests/ref/activation.c), tails and special values
// included.

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_test.h"

static const double tiny = 2e-38; // what a device may flush to zero

// The worst errors that cl/common/math.clh states, in ulp, with a margin for devices whose division is
// good to 2.5 ulp.
static double rtol(int kind)
{
    const double ulp = 1.2e-7;
    return kind == ATTNCL_GELU        ? 11 * ulp
           : kind == ATTNCL_GELU_TANH ? 16 * ulp
           : kind <= ATTNCL_RELU      ? 0
                                      : 6 * ulp;
}

static double kind_floor(int kind)
{
    return kind == ATTNCL_GELU_TANH ? 10 * tiny : kind == ATTNCL_GELU ? 3 * tiny : tiny;
}

// Relative errors of GELU by tanh grow with the exponent of its tail, up to 87.
static double tail_rtol(int kind)
{
    return kind == ATTNCL_GELU_TANH ? 2e-5 : rtol(kind);
}

static void check_within(struct host *x, int kind, double tolerance)
{
    const struct activation_fwd_params params = {kind};
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);

    ref_activation_fwd(x, kind, want);
    ck_op("activation_fwd", &params, HOSTS(x), HOSTS(want), tolerance, kind_floor(kind));
}

static void check(struct host *x, int kind)
{
    check_within(x, kind, rtol(kind));
}

LOOP_TEST(matches_the_reference, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    check(host_random(1, DIMS(3, 5, 7)), _i);
    check(host_random(2, DIMS(1)), _i);
    check(host_random(3, DIMS(5003)), _i);
    check(host_view(host_random(4, DIMS(4, 19))), _i);
}

// The sum is rounded once, the activation has its own error.
LOOP_TEST(of_a_sum_with_a_bias, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    static const int widths[] = {1, 19, 64, 100};
    const struct bias_activation_fwd_params params = {_i};

    for (size_t i = 0; i < COUNT_OF(widths); ++i) {
        struct host *x = host_random(11, DIMS(3, 2, widths[i])),
                    *bias = host_random(12, DIMS(widths[i]));
        struct host *sum = host_like(x), *want = host_like(x);
        for (int64_t at = 0; at < x->count; ++at)
            sum->data[at] = (float)(x->data[at] + bias->data[at % widths[i]]);
        ref_activation_fwd(sum, _i, want);
        ck_op("bias_activation_fwd", &params, HOSTS(x, bias), HOSTS(want), rtol(_i),
              kind_floor(_i));
    }
}

LOOP_TEST(is_accurate_in_the_tails, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    check_within(host_uniform(5, -14, 14, DIMS(6000)), _i, tail_rtol(_i));
    check_within(host_uniform(6, -86, 86, DIMS(3000)), _i, tail_rtol(_i));
    check(host_uniform(7, -1e-3, 1e-3, DIMS(1000)), _i);
}

LOOP_TEST(extreme_values, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(20));
    const double values[] = {1e4, -1e4, 3e38, -3e38, 0, 1e-30, -1e-30, 88.8, -87.3, 100};

    for (int i = 0; i < 20; ++i)
        x->data[i] = (float)values[i % 10];
    check(x, _i);
}

LOOP_TEST(infinities_have_their_limits, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    const struct activation_fwd_params params = {_i};
    struct host *x = host_new(ATTNCL_F32, DIMS(3)), *got = host_like(x);
    const double low[] = {-INFINITY, 0, 0, 0, -1, 0, 0};

    x->data[0] = -INFINITY;
    x->data[1] = INFINITY;
    x->data[2] = NAN;
    ck_ok(run_op("activation_fwd", &params, HOSTS(x), HOSTS(got)));
    ck_assert(got->data[0] == low[_i]);
    ck_assert(got->data[1] == (_i == ATTNCL_SIGMOID || _i == ATTNCL_TANH ? 1 : INFINITY));
    ck_assert(isnan(got->data[2]));
}

TEST(refusals)
{
    const struct activation_fwd_params none = {7}, gelu = {ATTNCL_GELU};
    struct host *x = host_new(ATTNCL_F32, DIMS(2)), *ints = host_new(ATTNCL_I32, DIMS(2));

    ck_refused("activation_fwd", &none, HOSTS(x), ATTNCL_ERR_ARGUMENT, "no activation 7");
    ck_refused("activation_fwd", &gelu, HOSTS(ints), ATTNCL_ERR_DTYPE, "I32");
    ck_refused("bias_activation_fwd", &gelu, HOSTS(x, host_new(ATTNCL_F32, DIMS(3))),
               ATTNCL_ERR_SHAPE, "bias is [3], x is [2]");
}
