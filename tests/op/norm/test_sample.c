// SPDX-License-Identifier: MIT
// Drawing tokens against the reference (tests/ref/sample.c).  The op's arithmetic is in integers, so that
// these draws agree on every device or on none: a difference of weights of 1e-6 moves one draw in a million.

#include "layer/layer.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

static void check(struct host *x, struct ref_sample s, int position)
{
    struct host *want = host_new(ATTNCL_I32, DIMS(x->dim[0]));

    ref_sample_fwd(&s, x, position, want);
    ck_op("sample_fwd", NULL, HOSTS(x, ref_sampling_words(&s), host_index(position)), HOSTS(want),
          0, 0);
}

// Scores 0 to 2, and zeros of both signs: the k-th has many equals.
TEST(of_equals_the_first_is_better)
{
    struct host *x = host_with(ATTNCL_F32, host_ints(1, 0, 3, DIMS(40, 301))->data, DIMS(40, 301));

    for (int64_t i = 0; i < x->count; i += 2)
        x->data[i] = x->data[i] == 0 ? -0.0 : x->data[i];
    // A threshold of k scores above which no bits are left to try is itself a score.
    struct host *powers = host_new(ATTNCL_F32, DIMS(40, 4));
    static const double scores[] = {0x1.fffffep1, 8, 4, 1};
    for (int64_t i = 0; i < powers->count; ++i)
        powers->data[i] = scores[i % 4];
    for (int k = 2; k < 4; ++k)
        check(powers, (struct ref_sample){8, k, 11}, k);
    for (int k = 1; k <= 300; k = 2 * k + 1)
        check(x, (struct ref_sample){2, k, 11}, k);
    check(x, (struct ref_sample){0, 0, 11}, 1);
    check(host_new(ATTNCL_F32, DIMS(5, 37)), (struct ref_sample){0, 0, 1}, 1);
    check(host_new(ATTNCL_F32, DIMS(50, 37)), (struct ref_sample){1, 17, 1}, 1);
}

// Frequencies of 4 tokens over rows, of one position and over positions: chi squared of 3 degrees of freedom.
static double chi_squared(const struct host *tokens, const double *p)
{
    double n[4] = {0, 0, 0, 0}, sum = 0;

    for (int64_t i = 0; i < tokens->count; ++i) {
        ck_assert(tokens->data[i] >= 0 && tokens->data[i] < 4);
        n[(int)tokens->data[i]] += 1;
    }
    for (int c = 0; c < 4; ++c) {
        const double expected = p[c] * (double)tokens->count;
        sum += (n[c] - expected) * (n[c] - expected) / expected;
    }
    return sum;
}

TEST(tokens_come_as_often_as_their_weights_say)
{
    enum { N = 4000 };
    static const double p[4] = {0.1, 0.4, 0.3, 0.2};
    const struct ref_sample s = {2, 0, 2026};
    struct host *x = host_new(ATTNCL_F32, DIMS(N, 4)), *y = host_new(ATTNCL_I32, DIMS(N));

    if (on_simulator())
        return;
    for (int i = 0; i < 4 * N; ++i)
        x->data[i] = (float)(2 * log(p[i % 4]));
    ck_ok(run_op("sample_fwd", NULL, HOSTS(x, ref_sampling_words(&s), host_index(3)), HOSTS(y)));
    ck_assert_double_lt(chi_squared(y, p), 16.3); // one seed in a thousand has more
}
