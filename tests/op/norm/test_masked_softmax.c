// SPDX-License-Identifier: MIT
// Masked softmax against its reference (tests/ref/masked_softmax.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

static void masked_softmax(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_masked_softmax_fwd(in[0], in[1], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    struct host *y = host_like(in[0]);

    masked_softmax(params, in, &y);
    ref_masked_softmax_bwd(y, dy[0], in[1], dx[0]);
}

// As for softmax: the subtraction's rounding (spans), exp, the division and the row's sum.  Lengths: none, within a
// vector, its end, all, beyond the row, negative.
OP_SPEC(masked_softmax_fwd, .in = "x f32 B Q K; valid_lens? i32:-3:K+4 B", .out = "y f32 B Q K",
        .ref = masked_softmax, .grad = "x", .ref_bwd = gradient, .grad_data = SPAN90, .rel = 10,
        .spans = true, .chain = 'K', .tiny = 2e-38,
        .smoke = "B=8 Q=3 K=37; B=3 Q=7 K=19,36; B=4 Q=1 K=1; B=2 Q=3 K=300",
        .full = "B=2 Q=3 K=8200", .special = "B=2 Q=3 K=21",
        .data = SPAN90 | MINUS_INF | NAN_ROWS | INT_ENDS,
        .cases = {{"plain", .smoke = "B=2 Q=3 K=33"},
                  {"lengths", .with = "valid_lens i32:-3:K+4 B"},
                  {"lengths of rows", .with = "valid_lens i32:-3:K+4 B Q"}});

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
