// SPDX-License-Identifier: MIT
// Masked softmax against its reference (tests/ref/masked_softmax.c).

#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

static void check(struct host *x, struct host *lens)
{
    struct host *want = host_like(x);

    ref_masked_softmax_fwd(x, lens, want);
    ck_op("masked_softmax_fwd", NULL, HOSTS(x, lens), HOSTS(want), 1.2e-6, 2e-38);
}

static struct host *lens_of(int n, const double *values)
{
    return host_with(ATTNCL_I32, values, DIMS(n));
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
    check(x, lens_of(4, values));
}

TEST(masked_columns_are_not_looked_at)
{
    struct host *x = host_random(9, DIMS(1, 1, 20)), *clean = host_copy(x);
    struct host *want = host_like(x);
    const double values[] = {7};

    for (int c = 7; c < 20; ++c)
        x->data[c] = c % 2 ? NAN : INFINITY;
    ref_masked_softmax_fwd(clean, lens_of(1, values), want);
    ck_op("masked_softmax_fwd", NULL, HOSTS(x, lens_of(1, values)), HOSTS(want), 1.5e-6, 2e-38);
}
