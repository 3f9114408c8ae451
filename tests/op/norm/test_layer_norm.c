// SPDX-License-Identifier: MIT
// Layer normalisation against its reference (tests/ref/layer_norm.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// Chosen to hit: one column, less than a vector, a ragged tail, several rows to a work-item, a long
// row.
static const struct shape {
    int rows, cols;
} shapes[] = {{1, 1},  {3, 7},    {5, 16},   {70, 19},  {4, 256},  {5, 257},
              {9, 32}, {3, 1024}, {2, 1025}, {1, 4100}, {2, 8196}, {1, 8209}};

// In units of the weight: the sums behind mean and variance, log2(n) * 4u, and each element's own
// roundings.  The ratio of mean and spread does not enter: the mean is corrected
// (cl/norm/layer_norm.cl).
static void check(struct host *x, struct host *weight, struct host *bias, float eps)
{
    const struct layer_norm_fwd_params params = {eps};
    const double u = 6e-8, n = (double)weight->count;
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);

    ref_layer_norm_fwd(x, weight, bias, (double)eps, want);
    ck_op("layer_norm_fwd", &params, HOSTS(x, weight, bias), HOSTS(want), 8 * u + n / 256 * u,
          u * (4 * log2(n + 1) * host_largest(weight) + 2 * host_largest(bias)));
}

TABLE_TEST(matches_the_reference, shapes)
{
    const int64_t cols = shapes[_i].cols;

    check(host_random(1u + (unsigned)_i, DIMS(shapes[_i].rows, cols)), host_random(2, DIMS(cols)),
          host_random(3, DIMS(cols)), 1e-5f);
}

TEST(over_several_axes)
{
    check(host_random(4, DIMS(2, 5, 3, 7)), host_random(5, DIMS(3, 7)), host_random(6, DIMS(3, 7)),
          1e-5f);
    check(host_random(4, DIMS(2, 5, 3)), host_random(5, DIMS(2, 5, 3)),
          host_random(6, DIMS(2, 5, 3)), 1e-5f);
}

TEST(takes_views)
{
    check(host_view(host_random(7, DIMS(3, 5, 21))), host_random(8, DIMS(21)),
          host_random(9, DIMS(21)), 1e-5f);
    check(host_view(host_random(7, DIMS(4, 3, 21))), host_random(8, DIMS(3, 21)),
          host_random(9, DIMS(3, 21)), 1e-5f);
}

TEST(large_means)
{
    const double kappas[] = {1, 100, 1e4};

    for (int k = 0; k < 3; ++k) {
        struct host *x = host_random(10, DIMS(3, 517));
        for (int64_t i = 0; i < x->count; ++i)
            x->data[i] = (float)(x->data[i] + kappas[k]);
        check(x, host_random(11, DIMS(517)), host_random(12, DIMS(517)), 1e-5f);
    }
}

// Rows that a GPU does not hold have their spread measured around the mean of their first columns.
TEST(first_columns_unlike_the_rest)
{
    enum { WIDTH = 8196 };
    struct host *x = host_random(16, DIMS(4, WIDTH));

    for (int c = 0; c < WIDTH; ++c) {
        x->data[c] = (float)(x->data[c] + (c < 4096 ? 1e4 : -1e4));
        x->data[WIDTH + c] = (float)(x->data[WIDTH + c] + 1e4 + c);
        x->data[2 * WIDTH + c] = c == 0 ? 1e3 : (float)(x->data[2 * WIDTH + c] + 100);
        x->data[3 * WIDTH + c] = -7.25;
    }
    check(x, host_random(11, DIMS(WIDTH)), host_random(12, DIMS(WIDTH)), 1e-5f);
}

TEST(extreme_rows)
{
    struct host *x = host_random(13, DIMS(5, 40));

    for (int c = 0; c < 40; ++c) {
        x->data[c] = c == 7 ? 1e4 : -1e4;
        x->data[40 + c] = 5.5; // no spread: bias alone
        x->data[80 + c] = (float)(x->data[80 + c] * 1e-10);
        x->data[120 + c] = (float)(x->data[120 + c] * 1e15);
        x->data[160 + c] = c % 2 ? 10000 : 9999;
    }
    check(x, host_random(14, DIMS(40)), host_random(15, DIMS(40)), 1e-5f);
}

TEST(not_a_number_stays_in_its_row)
{
    const struct layer_norm_fwd_params params = {1e-5f};
    struct host *x = host_random(8, DIMS(3, 18)), *got = host_like(x),
                *w = host_random(1, DIMS(18));

    x->data[18 + 17] = NAN;
    ck_ok(run_op("layer_norm_fwd", &params, HOSTS(x, w, w), HOSTS(got)));
    for (int c = 0; c < 18; ++c) {
        ck_assert(isfinite(got->data[c]));
        ck_assert(isnan(got->data[18 + c]));
        ck_assert(isfinite(got->data[36 + c]));
    }
}

TEST(refusals)
{
    const struct layer_norm_fwd_params params = {1e-5f}, negative = {-1.0f};
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3)), *w = host_new(ATTNCL_F32, DIMS(3));
    struct host *w2 = host_new(ATTNCL_F32, DIMS(2)), *w23 = host_new(ATTNCL_F32, DIMS(2, 3));

    ck_refused("layer_norm_fwd", &params, HOSTS(x, w2, w), ATTNCL_ERR_SHAPE,
               "weight is [2], x is [2, 3]");
    ck_refused("layer_norm_fwd", &params, HOSTS(x, w, w23), ATTNCL_ERR_SHAPE, "bias is [2, 3]");
    ck_refused("layer_norm_fwd", &params, HOSTS(w, w23, w23), ATTNCL_ERR_SHAPE,
               "weight is [2, 3], x is [3]");
    ck_refused("layer_norm_fwd", &negative, HOSTS(x, w, w), ATTNCL_ERR_ARGUMENT, "eps is -1");
}
