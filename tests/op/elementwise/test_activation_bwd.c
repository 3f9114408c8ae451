// SPDX-License-Identifier: MIT
// The gradients of activations against their reference (tests/ref/activation_bwd.c) and against
// finite differences.

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/grad_test.h"

// Factors of a few ulp each (cl/common/math.clh); near a zero of the slope, GELU's and SiLU's are
// differences of terms below 1.2.
static const double rtol = 4e-6, near_zero = 4e-7;

static void check(struct host *x, int kind)
{
    const struct activation_bwd_params params = {kind};
    struct host *dy = host_random(9, x->rank, x->dim), *want = host_like(x);

    for (int64_t i = 0; i < dy->count; ++i)
        dy->data[i] = fmin(fmax(dy->data[i], -3), 3);
    for (int64_t i = 0; i < dy->count; ++i)
        dy->data[i] = (float)dy->data[i];
    ref_activation_bwd(x, dy, kind, want);
    ck_op("activation_bwd", &params, HOSTS(x, dy), HOSTS(want), rtol, 3 * near_zero);
}

LOOP_TEST(matches_the_reference, ATTNCL_IDENTITY, ATTNCL_GELU_TANH + 1)
{
    struct host *x = host_uniform(2, -9, 9, DIMS(5003));

    x->data[7] = 0; // ReLU: 0 there
    check(x, _i);
    check(host_random(1, DIMS(3, 5, 7)), _i);
    check(host_uniform(3, -120, 120, DIMS(1000)), _i);
    check(host_uniform(3, -3e38, 3e38, DIMS(100)), _i);
}

LOOP_TEST(epilogue_matches_the_reference, ATTNCL_IDENTITY, ATTNCL_RELU)
{
    const struct linear_bwd_epilogue_params params = {_i};
    struct host *p = host_random(4, DIMS(7, 33)), *dy = host_random(5, DIMS(7, 33));
    struct host *gate = host_random(6, DIMS(7, 33));
    struct host *dp = host_like(p), *dgate = host_like(p);
    struct host *want_dp = host_like(p), *want_dgate = host_like(p);

    ref_linear_bwd_epilogue(p, dy, gate, _i, want_dp, want_dgate);
    ck_ok(run_op("linear_bwd_epilogue", &params, HOSTS(p, dy, gate), HOSTS(dp, dgate)));
    ck_near(dp, want_dp, rtol, 16 * near_zero);
    ck_near(dgate, want_dgate, rtol, near_zero);
    ref_linear_bwd_epilogue(p, dy, NULL, _i, want_dp, NULL);
    ck_op("linear_bwd_epilogue", &params, HOSTS(p, dy), HOSTS(want_dp), rtol, 4 * near_zero);
}

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct activation_fwd_params *p = params;
    ref_activation_fwd(in[0], p->kind, out[0]);
}

// f(x + bias)
static void with_bias(const void *params, struct host *const *in, struct host *const *out)
{
    struct host *sum = host_like(in[0]);

    for (int64_t i = 0; i < sum->count; ++i)
        sum->data[i] = in[0]->data[i] + in[1]->data[i % in[1]->count];
    forward(params, (struct host *const[]){sum}, out);
}

LOOP_TEST(meets_finite_differences, ATTNCL_GELU, ATTNCL_RELU)
{
    const struct activation_fwd_params params = {_i};

    ck_gradients("activation_fwd", &params, HOSTS(host_random(7, DIMS(3, 17))), 1, forward, 1e-5);
    ck_gradients("bias_activation_fwd", &params,
                 HOSTS(host_random(7, DIMS(3, 17)), host_random(8, DIMS(17))), 3, with_bias, 1e-5);
}

TEST(refusals)
{
    const struct activation_bwd_params none = {17}, relu = {ATTNCL_RELU};
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3)), *dy = host_new(ATTNCL_F32, DIMS(3, 2));

    ck_refused("activation_bwd", &none, HOSTS(x, x), ATTNCL_ERR_ARGUMENT, "17");
    ck_refused("activation_bwd", &relu, HOSTS(x, dy), ATTNCL_ERR_SHAPE, "[3, 2]");
}
