// SPDX-License-Identifier: MIT
// Drawing tokens against the reference (tests/ref/sample.c).  The op's arithmetic is in integers, so that
// these draws agree on every device or on none: a difference of weights of 1e-6 moves one draw in a million.

#include <math.h>

#include "layer/sampling.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static struct host *sampling_of(const struct ref_sample *s)
{
    int32_t words[SAMPLING_WORDS];
    struct host *h = host_new(ATTNCL_I32, DIMS(SAMPLING_WORDS));

    attncl__sampling_words(s->temperature, s->top_k, s->seed, words);
    for (int i = 0; i < SAMPLING_WORDS; ++i)
        h->data[i] = words[i];
    return h;
}

// The definition of the words that the op reads.
static void sample(const void *params, struct host *const *in, struct host *const *out)
{
    const int32_t bits = (int32_t)in[1]->data[1];
    float factor;

    (void)params;
    memcpy(&factor, &bits, sizeof factor);
    const struct ref_sample s = {1 / (log(2) * (double)factor), (int64_t)in[1]->data[0],
                                 (uint32_t)(int32_t)in[1]->data[2] |
                                     (uint64_t)(uint32_t)(int32_t)in[1]->data[3] << 32};
    ref_sample_fwd(&s, in[0], (int64_t)in[2]->data[0], out[0]);
}

#define SAMPLING(name, ...)                                                                        \
    static void name(struct host *const *in)                                                       \
    {                                                                                              \
        host_set(in[1], sampling_of(&(struct ref_sample){__VA_ARGS__})->data);                     \
    }
SAMPLING(all, 1, 0, 7)
SAMPLING(cold, 0.3, 0, 0x123456789abcdefu)
SAMPLING(hot, 50, 1 << 20, ~(uint64_t)0)
SAMPLING(best_of_3, 1, 3, 5)
SAMPLING(best_of_30, 5, 30, 3)
SAMPLING(best, 0, 5, 2)

// A score that is not finite gives -1.
OP_SPEC(sample_fwd, .in = "x f32 B C; sampling i32 4; position i32:0:1073741825 1",
        .out = "y i32 B", .ref = sample, .nonzero = "C", .smoke = "B=40 C=1,3,16,19; B=5 C=300",
        .full = "B=40 C=2,256; B=5 C=1031,4099", .special = "B=3 C=21",
        .data = SCALED | PEAK | LIMITS | ALIKE | RISING | INT_ENDS,
        .cases = {{"all", .prepare = all},
                  {"cold", .prepare = cold},
                  {"hot", .prepare = hot},
                  {"best of 3", .prepare = best_of_3},
                  {"best of 30", .prepare = best_of_30},
                  {"best", .prepare = best}},
        .refusals = {{ATTNCL_ERR_SHAPE, "has 2 words, expected 4", .with = "sampling i32 2"}});

static void store(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    (void)out;
    ref_sample_store_fwd(in[0], in[1], in[2], in[3]);
}

// step: the position, then a token of each row.
OP_SPEC(sample_store_fwd,
        .in = "tokens i32:-1:1000 B; step i32:0:2147483647 1+B; drawn i32:-9:99 R B; "
              "window? i32:0:1000 W B",
        .out = "", .ref = store, .data = INT_ENDS, .nonzero = "RW",
        .smoke = "B=1 R=1 W=1; B=3 R=4 W=2; B=300 R=4 W=5", .full = "B=1 R=4 W=900",
        .cases = {{"plain"}, {"window", .with = "window i32:0:1000 W B"}});

static void check(struct host *x, struct ref_sample s, int position)
{
    struct host *want = host_new(ATTNCL_I32, DIMS(x->dim[0]));

    ref_sample_fwd(&s, x, position, want);
    ck_op("sample_fwd", NULL, HOSTS(x, sampling_of(&s), host_index(position)), HOSTS(want), 0, 0);
}

// Scores 0 to 2, and zeros of both signs: the k-th has many equals.
TEST(of_equals_the_first_is_better)
{
    struct host *x = host_with(ATTNCL_F32, host_ints(1, 0, 3, DIMS(40, 301))->data, DIMS(40, 301));

    for (int64_t i = 0; i < x->count; i += 2)
        x->data[i] = x->data[i] == 0 ? -0.0 : x->data[i];
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
    ck_ok(run_op("sample_fwd", NULL, HOSTS(x, sampling_of(&s), host_index(3)), HOSTS(y)));
    ck_assert_double_lt(chi_squared(y, p), 16.3); // one seed in a thousand has more
}
