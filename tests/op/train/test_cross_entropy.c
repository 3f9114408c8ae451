// SPDX-License-Identifier: MIT
// Cross entropy against its reference (tests/ref/cross_entropy.c).

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_test.h"

// A row's loss: the relative error of the sum of exponentials becomes an absolute one of its
// logarithm; the difference of maximum and target, the logarithm and their sum round once each.
// Sums over rows: serial pieces of at most 128 and trees above them, 150u at a million rows.
static void check_smoothed(struct host *logits, struct host *targets, int reduction, int64_t pad,
                           double smoothing)
{
    const struct cross_entropy_fwd_params params = {reduction, pad, smoothing};
    const bool each = reduction == ATTNCL_REDUCE_NONE;
    const double u = 6e-8, n_classes = (double)logits->dim[logits->rank - 1];
    const double rows = (double)targets->count;
    struct host *got = host_new(ATTNCL_F32, each ? targets->rank : 0, targets->dim);
    struct host *want = host_like(got);

    ref_cross_entropy_fwd(logits, targets, reduction, pad, smoothing, want);
    ck_ok(run_op("cross_entropy_fwd", &params, HOSTS(logits, targets), HOSTS(got)));
    const double atol = (10 + log2(n_classes) + n_classes / 256) * u;
    const double sum_rtol = each ? 0 : (rows < 128 ? rows : 128 + log2(rows)) * u;
    const double mean_rtol = smoothing > 0 ? (12 + n_classes / 256) * u : 0; // of terms of one sign
    ck_near(got, want, 4 * u + sum_rtol + mean_rtol,
            reduction == ATTNCL_REDUCE_SUM ? atol * rows : atol);
}

static void check(struct host *logits, struct host *targets, int reduction, int64_t pad)
{
    check_smoothed(logits, targets, reduction, pad, 0);
}

LOOP_TEST(matches_the_reference, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    for (int64_t pad = -1; pad < 3; pad += 3) {
        check(host_random(1, DIMS(4, 5, 37)), host_ints(2, 0, 37, DIMS(4, 5)), _i, pad);
        check(host_random(1, DIMS(300, 5)), host_ints(2, 0, 5, DIMS(300)), _i, pad);
        check(host_random(1, DIMS(2, 1500)), host_ints(2, 0, 1500, DIMS(2)), _i, pad);
        check(host_random(1, DIMS(7)), host_ints(2, 0, 7, 0, NULL), _i, pad);
        check(host_random(1, DIMS(3, 1)), host_ints(2, 0, 1, DIMS(3)), _i, pad);
    }
    check(host_random(1, DIMS(2, 8193)), host_ints(2, 0, 8193, DIMS(2)), _i, -1);
    check(host_view(host_random(1, DIMS(4, 3, 20))), host_ints(2, 0, 20, DIMS(4, 3)), _i, 7);
}

LOOP_TEST(label_smoothing, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    struct host *x = host_random(5, DIMS(3, 24)), *t = host_ints(6, 0, 24, DIMS(3));

    for (int64_t pad = -1; pad < 3; pad += 3) {
        check_smoothed(host_random(1, DIMS(4, 5, 37)), host_ints(2, 0, 37, DIMS(4, 5)), _i, pad,
                       0.1);
        check_smoothed(host_random(1, DIMS(300, 5)), host_ints(2, 0, 5, DIMS(300)), _i, pad, 0.3);
        check_smoothed(host_random(1, DIMS(2, 1500)), host_ints(2, 0, 1500, DIMS(2)), _i, pad, 1);
        check_smoothed(host_random(1, DIMS(3, 1)), host_ints(2, 0, 1, DIMS(3)), _i, pad, 0.1);
    }
    check_smoothed(host_random(1, DIMS(2, 8193)), host_ints(2, 0, 8193, DIMS(2)), _i, -1, 0.1);
    check_smoothed(host_view(host_random(1, DIMS(4, 3, 20))), host_ints(2, 0, 20, DIMS(4, 3)), _i,
                   7, 0.1);
    for (int c = 0; c < 72; ++c)
        x->data[c] = c % 5 ? -1e4 : 1e4;
    check_smoothed(x, t, _i, -1, 0.1);
}

LOOP_TEST(padding_only, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    check(host_random(1, DIMS(6, 9)), host_new(ATTNCL_I32, DIMS(6)), _i, 0);
    check(host_random(1, DIMS(6, 9)), host_new(ATTNCL_I32, DIMS(6)), _i, 1);
}

LOOP_TEST(no_rows, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    check(host_new(ATTNCL_F32, DIMS(0, 9)), host_new(ATTNCL_I32, DIMS(0)), _i, -1);
}

LOOP_TEST(many_rows, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    check(host_random(3, DIMS(2100, 3)), host_ints(4, 0, 3, DIMS(2100)), _i, 1);
}

LOOP_TEST(extreme_rows, ATTNCL_REDUCE_MEAN, ATTNCL_REDUCE_NONE + 1)
{
    struct host *x = host_random(5, DIMS(5, 24)), *targets = host_new(ATTNCL_I32, DIMS(5));
    const double chosen[] = {3, 4, 5, 6, 0};

    host_set(targets, chosen);
    for (int c = 0; c < 24; ++c) {
        x->data[c] = c == 3 ? 1e4 : -1e4;
        x->data[24 + c] = c == 3 ? 1e4 : -1e4; // the target is the unlikely one
        x->data[48 + c] = c % 2 ? 44.5 : -44.5;
        x->data[72 + c] = c % 2 ? -INFINITY : 1;
        x->data[96 + c] = -1e4;
    }
    check(x, targets, _i, -1);
}

TEST(padding_hides_what_is_not_a_number)
{
    struct host *x = host_random(6, DIMS(3, 20));
    struct host *targets = host_with(ATTNCL_I32, (const double[]){5, 9, 5}, DIMS(3)),
                *got = host_new(ATTNCL_F32, DIMS(3));
    const struct cross_entropy_fwd_params params = {ATTNCL_REDUCE_NONE, 9, 0},
                                          none = {ATTNCL_REDUCE_NONE, -1, 0};

    x->data[20 + 3] = NAN;
    ck_ok(run_op("cross_entropy_fwd", &params, HOSTS(x, targets), HOSTS(got)));
    ck_assert(got->data[1] == 0 && isfinite(got->data[0]) && isfinite(got->data[2]));
    ck_ok(run_op("cross_entropy_fwd", &none, HOSTS(x, targets), HOSTS(got)));
    ck_assert(isnan(got->data[1]) && isfinite(got->data[0]) && isfinite(got->data[2]));
}

TEST(refusals)
{
    const struct cross_entropy_fwd_params mean = {ATTNCL_REDUCE_MEAN, -1, 0}, other = {3, -1, 0},
                                          smooth = {ATTNCL_REDUCE_MEAN, -1, 1.5};
    struct host *x = host_new(ATTNCL_F32, DIMS(4, 3)), *t = host_new(ATTNCL_I32, DIMS(4));
    struct host *t3 = host_new(ATTNCL_I32, DIMS(3)), *t43 = host_new(ATTNCL_I32, DIMS(4, 3));
    struct host *no_class = host_new(ATTNCL_F32, DIMS(4, 0));

    ck_refused("cross_entropy_fwd", &mean, HOSTS(x, t3), ATTNCL_ERR_SHAPE,
               "logits is [4, 3], targets is [3]");
    ck_refused("cross_entropy_fwd", &mean, HOSTS(x, t43), ATTNCL_ERR_SHAPE, "one axis more");
    ck_refused("cross_entropy_fwd", &mean, HOSTS(no_class, t), ATTNCL_ERR_SHAPE, "[4, 0]");
    ck_refused("cross_entropy_fwd", &mean, HOSTS(t, t), ATTNCL_ERR_DTYPE, "logits is I32");
    ck_refused("cross_entropy_fwd", &smooth, HOSTS(x, t), ATTNCL_ERR_ARGUMENT,
               "label_smoothing is 1.5");
    ck_refused("cross_entropy_fwd", &other, HOSTS(x, t), ATTNCL_ERR_ARGUMENT, "reduction 3");
}
