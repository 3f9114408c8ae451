// SPDX-License-Identifier: MIT
// The gradient of softmax, plain and with lengths, against its reference (tests/ref/softmax_bwd.c)
// and against finite differences.

#include <math.h>

#include "ref/ref.h"
#include "support/grad_test.h"

// Chosen to hit: one column, less than a vector, a ragged tail, several rows to a work-item, a long
// row.
static const struct shape {
    int rows, cols;
} shapes[] = {{1, 1}, {3, 7}, {5, 16}, {37, 19}, {5, 257}, {9, 64}, {1, 4096}, {2, 4099}};

// Each product and the sum of a row round: log2 of its length and a few more, in units of the
// largest |y dy|, which is below 5.
static double rounding(int64_t cols)
{
    return 5 * 6e-8 * (6 + log2((double)cols) + (double)cols / 256);
}

// Rows that sum to 1.
static struct host *weights(unsigned seed, int rank, const int64_t *dim)
{
    struct host *x = host_random(seed, rank, dim), *y = host_like(x);

    ref_softmax_fwd(x, y);
    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = (float)y->data[i];
    return y;
}

TABLE_TEST(matches_the_reference, shapes)
{
    const struct shape s = shapes[_i];
    struct host *y = weights(7u + (unsigned)_i, DIMS(s.rows, s.cols));
    struct host *dy = host_random(8, DIMS(s.rows, s.cols));
    struct host *want = host_like(y);

    ref_softmax_bwd(y, dy, want);
    ck_op("softmax_bwd", NULL, HOSTS(y, dy), HOSTS(want), 1e-6, rounding(s.cols));
}

TEST(matches_the_reference_with_lengths)
{
    struct host *y = weights(9, DIMS(3, 4, 37)), *dy = host_random(10, DIMS(3, 4, 37));
    struct host *const lens[] = {host_ints(11, 0, 40, DIMS(3)), host_ints(12, 0, 40, DIMS(3, 4)),
                                 NULL};

    lens[0]->data[1] = 0;
    for (int i = 0; i < 3; ++i) {
        struct host *want = host_like(y);
        ref_masked_softmax_bwd(y, dy, lens[i], want);
        ck_op("softmax_bwd", NULL, HOSTS(y, dy, lens[i]), HOSTS(want), 1e-6, rounding(37));
    }
}

static void plain(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_softmax_fwd(in[0], out[0]);
}

static void masked(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_masked_softmax_fwd(in[0], in[1], out[0]);
}

TEST(meets_finite_differences)
{
    struct host *x = host_random(13, DIMS(2, 3, 17)), *lens = host_ints(14, 0, 20, DIMS(2, 3));

    ck_gradients("softmax_fwd", NULL, HOSTS(x), 1, plain, 1e-5);
    lens->data[0] = 0;
    ck_gradients("masked_softmax_fwd", NULL, HOSTS(x, lens), 1, masked, 1e-5);
}

TEST(refusals)
{
    struct host *y = host_new(ATTNCL_F32, DIMS(2, 3)), *dy = host_new(ATTNCL_F32, DIMS(2, 4));
    struct host *y3 = host_new(ATTNCL_F32, DIMS(2, 3, 4)), *lens = host_ints(1, 0, 3, DIMS(3));

    ck_refused("softmax_bwd", NULL, HOSTS(y, dy), ATTNCL_ERR_SHAPE, "[2, 4]");
    ck_refused("softmax_bwd", NULL, HOSTS(y3, y3, lens), ATTNCL_ERR_SHAPE, "axis 0");
}
