// SPDX-License-Identifier: MIT
// Sums of 2^24 terms.  A float that adds one term after another would be off by a chain's length times 2^-24, all of its
// digits; kernels have at least as many chains as a vector has lanes, or sum in blocks.

#include <math.h>
#include <stdio.h>

#include "accuracy/table.h"
#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/compare.h"
#include "support/op_test.h"

enum { COUNT = 1 << 24 };
static const double unit = 0x1p-24; // one rounding

// The limit: three times the worst error measured on PoCL (docs/accuracy.md), with the CPU variant, whose chains have a
// vector's lane each, and with that of GPUs, where they have a work-item's.
static void report(const char *what, const struct worst *worst, double on_cpus, double on_gpus)
{
    const double bound = 3 * (test_context()->caps.variant == VARIANT_CPU ? on_cpus : on_gpus);

    table_add(what, worst->ratio, bound, "2^-24", "2^24 terms");
    ck_worst(worst, bound, "%s of 2^24 terms", what);
}

// Scales an error measured with vectors of 16 floats to this device's: each term is rounded to the sum's last digit, so
// that the error grows with the chain's length twice, by number and by size.
static double of_vectors(double measured)
{
    const double shorter = 16.0 / test_context()->caps.vector_width;
    return measured * shorter * shorter;
}

static bool skips(void)
{
    return test_context()->caps.max_loop_iterations >
           0; // a device that cuts long loops off refuses such rows
}

TEST(softmax)
{
    struct host *x = host_random(1, DIMS(1, COUNT)), *got = host_like(x), *want = host_like(x);
    struct worst worst = {0};

    if (skips())
        return;
    ref_softmax_fwd(x, want);
    ck_ok(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(got)));
    for (int64_t i = 0; i < COUNT; ++i)
        worst_add(&worst, i, got->data[i], want->data[i], unit * fabs(want->data[i]));
    report("softmax", &worst, of_vectors(217), 12.3);
}

TEST(layer_norm)
{
    const struct layer_norm_fwd_params params = {1e-5f};
    struct host *x = host_uniform(2, 2, 3, DIMS(1, COUNT)); // the mean is larger than what is left
    struct host *weight = host_uniform(3, 1, 1, DIMS(COUNT)),
                *bias = host_new(ATTNCL_F32, DIMS(COUNT));
    struct host *got = host_like(x), *want = host_like(x);
    struct worst worst = {0};

    if (skips())
        return;
    ref_layer_norm_fwd(x, weight, bias, (double)params.eps, want);
    ck_ok(run_op("layer_norm_fwd", &params, HOSTS(x, weight, bias), HOSTS(got)));
    for (int64_t i = 0; i < COUNT; ++i)
        worst_add(&worst, i, got->data[i], want->data[i], unit);
    report("layer norm", &worst, of_vectors(2070), 18.4);
}

TEST(cross_entropy)
{
    const struct cross_entropy_fwd_params params = {.reduction = ATTNCL_REDUCE_NONE, .pad = -1};
    struct host *x = host_random(4, DIMS(1, COUNT)), *target = host_ints(5, 0, COUNT, DIMS(1));
    struct host *got = host_new(ATTNCL_F32, DIMS(1)), *want = host_like(got);
    struct worst worst = {0};

    if (skips())
        return;
    ref_cross_entropy_fwd(x, target, ATTNCL_REDUCE_NONE, -1, 0, want);
    ck_ok(run_op("cross_entropy_fwd", &params, HOSTS(x, target), HOSTS(got)));
    worst_add(&worst, 0, got->data[0], want->data[0], unit * fabs(want->data[0]));
    report("cross entropy, classes", &worst, of_vectors(11.1), 0.887);
}

// Three columns; blocks of rows, then the blocks.
TEST(column_sums)
{
    struct host *d = host_uniform(6, 0, 1, DIMS(COUNT, 3)), *got = host_new(ATTNCL_F32, DIMS(3));
    double sum[3] = {0};
    struct worst worst = {0};

    for (int64_t i = 0; i < d->count; ++i)
        sum[i % 3] += d->data[i];
    ck_ok(run_op("linear_bwd_bias", NULL, HOSTS(d), HOSTS(got)));
    for (int c = 0; c < 3; ++c)
        worst_add(&worst, c, got->data[c], sum[c], unit * sum[c]);
    report("bias gradient, rows", &worst, 12.9, 12.9);
}

TEST(gradient_norm)
{
    struct host *x = host_random(7, DIMS(COUNT)), *got = host_new(ATTNCL_F32, DIMS(3));
    struct worst worst = {0};
    double sum = 0;

    for (int64_t i = 0; i < COUNT; ++i)
        sum += x->data[i] * x->data[i];
    ck_ok(run_op("sum_squares_fwd", NULL, HOSTS(x), HOSTS(got)));
    worst_add(&worst, 0, got->data[0], sum, unit * sum);
    report("sum of squares", &worst, 0.56, 1.44);
}
