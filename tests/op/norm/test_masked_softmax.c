// SPDX-License-Identifier: MIT
// Masked softmax against its reference (tests/ref/masked_softmax.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// As for softmax: the subtraction's rounding (span), exp, the division and the row's sum.
static double rtol(double span, int64_t cols)
{
    return (span + 10 + log2((double)cols)) * 6e-8 + 6e-8 * (double)cols / 256;
}
static const double tiny = 2e-38; // what a device may flush to zero

static void check(struct host *x, struct host *lens, double span)
{
    struct host *want = host_new(ATTNCL_F32, x->rank, x->dim);

    ref_masked_softmax_fwd(x, lens, want);
    ck_op("masked_softmax_fwd", NULL, HOSTS(x, lens), HOSTS(want), rtol(span, x->dim[2]), tiny);
}

static struct host *lens_of(int n, const double *values)
{
    return host_with(ATTNCL_I32, values, DIMS(n));
}

TEST(a_length_per_batch)
{
    // None, one, within a vector, its end, beyond it, all, more than all, negative.
    const double values[] = {0, 1, 5, 16, 17, 37, 40, -3};
    check(host_random(1, DIMS(8, 3, 37)), lens_of(8, values), 9);
}

TEST(a_length_per_row)
{
    check(host_random(2, DIMS(3, 7, 19)), host_ints(3, 0, 21, DIMS(3, 7)), 9);
    check(host_random(2, DIMS(2, 2, 300)), host_ints(4, 0, 301, DIMS(2, 2)), 9);
    check(host_random(2, DIMS(4, 1, 1)), host_ints(4, 0, 2, DIMS(4, 1)), 9);
    // Whole float4s, of which a length cuts one; and rows that a GPU does not hold.
    check(host_random(2, DIMS(3, 7, 36)), host_ints(3, 0, 37, DIMS(3, 7)), 9);
    check(host_random(2, DIMS(1, 3, 8200)), host_ints(5, 0, 8201, DIMS(1, 3)), 9);
}

TEST(no_lengths)
{
    check(host_random(5, DIMS(2, 3, 33)), NULL, 9);
}

TEST(takes_views)
{
    check(host_view(host_random(6, DIMS(2, 5, 21))), host_ints(7, 0, 22, DIMS(2, 5)), 9);
}

TEST(low_scores_compete_with_masked_ones)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(4, 1, 20));
    const double values[] = {6, 6, 6, 6};

    for (int c = 0; c < 20; ++c) {
        x->data[c] = -2e6;                 // all lose: the masked ones share
        x->data[20 + c] = -1e6;            // a draw
        x->data[40 + c] = -1e6 + 0.25 * c; // close
        x->data[60 + c] = -INFINITY;
    }
    check(x, lens_of(4, values), 5);
}

TEST(masked_columns_are_not_looked_at)
{
    struct host *x = host_random(9, DIMS(1, 1, 20)), *clean = host_copy(x);
    struct host *want = host_like(x);
    const double values[] = {7};

    for (int c = 7; c < 20; ++c)
        x->data[c] = c % 2 ? NAN : INFINITY;
    ref_masked_softmax_fwd(clean, lens_of(1, values), want);
    ck_op("masked_softmax_fwd", NULL, HOSTS(x, lens_of(1, values)), HOSTS(want), rtol(9, 20), tiny);
}

TEST(refusals)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3, 4)), *flat = host_new(ATTNCL_F32, DIMS(2, 4));
    struct host *two = host_new(ATTNCL_I32, DIMS(2)), *three = host_new(ATTNCL_I32, DIMS(3));
    struct host *swapped = host_new(ATTNCL_I32, DIMS(2, 4));

    ck_refused("masked_softmax_fwd", NULL, HOSTS(flat, two), ATTNCL_ERR_SHAPE, "[2, 4]");
    ck_refused("masked_softmax_fwd", NULL, HOSTS(x, three), ATTNCL_ERR_SHAPE,
               "axis 0 of valid_lens is 3, expected B = 2");
    ck_refused("masked_softmax_fwd", NULL, HOSTS(x, swapped), ATTNCL_ERR_SHAPE, "axis 1");
    ck_refused("masked_softmax_fwd", NULL, HOSTS(x, x), ATTNCL_ERR_DTYPE, "F32");
}
