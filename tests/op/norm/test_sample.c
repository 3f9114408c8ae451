// SPDX-License-Identifier: MIT
// Drawing tokens against the reference (tests/ref/sample.c).  The op's arithmetic is in integers, so that
// these draws agree on every device or on none: a difference of weights of 1e-6 moves one draw in a million.

#include <math.h>

#include "layer/sampling.h"
#include "ref/ref.h"
#include "support/op_test.h"

static struct host *sampling_of(const struct ref_sample *s)
{
    int32_t words[SAMPLING_WORDS];
    struct host *h = host_new(ATTNCL_I32, DIMS(SAMPLING_WORDS));

    attncl__sampling_words(s->temperature, s->top_k, s->seed, words);
    for (int i = 0; i < SAMPLING_WORDS; ++i)
        h->data[i] = words[i];
    return h;
}

static void check(struct host *x, struct ref_sample s, int position)
{
    struct host *want = host_new(ATTNCL_I32, DIMS(x->dim[0]));

    ref_sample_fwd(&s, x, position, want);
    ck_op("sample_fwd", NULL, HOSTS(x, sampling_of(&s), host_index(position)), HOSTS(want), 0, 0);
}

static const int widths[] = {1, 2, 3, 16, 19, 256, 300, 1031, 4099};
enum { N_WIDTHS = sizeof widths / sizeof widths[0] };

static int rows_of(int width)
{
    if (on_simulator())
        return width > 1000 ? 1 : 3;
    return width > 1000 ? 5 : 40;
}

LOOP_TEST(all_tokens, 0, N_WIDTHS)
{
    struct host *x = host_random(1, DIMS(rows_of(widths[_i]), widths[_i]));

    check(x, (struct ref_sample){1, 0, 7}, 0);
    check(x, (struct ref_sample){0.3, 0, 0x123456789abcdefu}, 41);
    check(x, (struct ref_sample){50, 2 * widths[_i], ~(uint64_t)0}, 1 << 30);
}

LOOP_TEST(the_best_k, 0, N_WIDTHS)
{
    struct host *x = host_random(2, DIMS(rows_of(widths[_i]), widths[_i]));

    for (int k = 1; k <= widths[_i]; k = 3 * k + 1)
        check(x, (struct ref_sample){1, k, (uint64_t)k}, k);
    check(x, (struct ref_sample){5, widths[_i] - 1, 3}, 5);
}

LOOP_TEST(the_best, 0, N_WIDTHS)
{
    struct host *x = host_random(3, DIMS(rows_of(widths[_i]), widths[_i]));

    check(x, (struct ref_sample){0, 0, 1}, 0);
    check(x, (struct ref_sample){0, 5, 2}, 9);
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

TEST(extremes)
{
    struct host *x = host_random(4, DIMS(6, 40));

    for (int c = 0; c < 40; ++c) {
        x->data[c] = c % 2 ? 3e38 : -3e38; // their difference is no float
        x->data[40 + c] *= 1e4;
        x->data[80 + c] = -1e30;
        x->data[120 + c] *= 1e-30;
        x->data[160 + c] = c == 33 ? -2e38 : -3e38;
        x->data[200 + c] = -100 - x->data[200 + c];
    }
    check(x, (struct ref_sample){1, 0, 1}, 0);
    check(x, (struct ref_sample){1e6, 0, 1}, 1);
    check(x, (struct ref_sample){1e-6, 0, 1}, 2);
    check(x, (struct ref_sample){1, 7, 1}, 3);
    check(x, (struct ref_sample){0, 0, 1}, 4);
}

TEST(what_is_not_finite_is_told)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct host *x = host_random(5, DIMS(8, 67));

    for (int i = 0; i < 3; ++i) {
        x->data[2 * i * 67 + 66] = bad[i];
        x->data[7 * 67 + i] = bad[i];
    }
    check(x, (struct ref_sample){1, 0, 1}, 0);
    check(x, (struct ref_sample){1, 3, 1}, 0);
    check(x, (struct ref_sample){0, 0, 1}, 0);
}

TEST(views_and_nothing)
{
    check(host_view(host_random(6, DIMS(9, 21))), (struct ref_sample){1, 5, 1}, 3);
    check(host_new(ATTNCL_F32, DIMS(0, 5)), (struct ref_sample){1, 0, 1}, 0);
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

// n_window 0: no window.
static void check_store(struct host *tokens, int position, int n_rows, int n_window)
{
    const int64_t n = tokens->count;
    struct host *step = host_ints(1, 0, 99, DIMS(1 + n)),
                *drawn = host_ints(2, -9, 99, DIMS(n_rows, n));
    step->data[0] = position;
    struct host *window = n_window ? host_ints(7, 0, 1000, DIMS(n_window, n)) : NULL;
    struct host *want_step = host_copy(step), *want_drawn = host_copy(drawn);
    struct host *want_window = window ? host_copy(window) : NULL;

    ref_sample_store_fwd(tokens, want_step, want_drawn, want_window);
    ck_ok(run_op("sample_store_fwd", NULL, HOSTS(tokens, step, drawn, window), NULL, 0));
    ck_near(step, want_step, 0, 0);
    ck_near(drawn, want_drawn, 0, 0);
    if (window)
        ck_near(window, want_window, 0, 0);
}

TEST(a_step_is_moved_on)
{
    check_store(host_ints(3, 0, 1000, DIMS(1)), 0, 1, 0);
    check_store(host_ints(4, 0, 1000, DIMS(3)), 7, 4, 0);
    check_store(host_ints(5, -1, 3, DIMS(700)), 12, 4, 0);
    check_store(host_ints(6, -1, 3, DIMS(64)), INT32_MAX - 1, 256, 0);
}

TEST(a_window_is_moved_on)
{
    check_store(host_ints(3, 0, 1000, DIMS(1)), 0, 1, 1);
    check_store(host_ints(3, 0, 1000, DIMS(1)), 5, 4, 900);
    check_store(host_ints(4, -1, 3, DIMS(3)), 7, 4, 2);
    check_store(host_ints(5, -1, 3, DIMS(300)), 12, 4, 5);
}

TEST(refusals)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3)), *words = host_new(ATTNCL_I32, DIMS(4)),
                *at = host_index(0), *two = host_new(ATTNCL_I32, DIMS(2)),
                *three = host_new(ATTNCL_I32, DIMS(3)), *drawn = host_new(ATTNCL_I32, DIMS(8, 2));

    ck_refused("sample_fwd", NULL, HOSTS(two, words, at), ATTNCL_ERR_DTYPE, "I32");
    ck_refused("sample_fwd", NULL, HOSTS(host_new(ATTNCL_F32, DIMS(2, 0)), words, at),
               ATTNCL_ERR_SHAPE, "has 0");
    ck_refused("sample_fwd", NULL, HOSTS(x, two, at), ATTNCL_ERR_SHAPE, "has 2 words, expected 4");
    ck_refused("sample_fwd", NULL, HOSTS(x, words, two), ATTNCL_ERR_SHAPE, "position");
    ck_refused("sample_store_fwd", NULL, HOSTS(two, two, drawn, NULL), ATTNCL_ERR_SHAPE,
               "2 tokens");
    ck_refused("sample_store_fwd", NULL, HOSTS(two, three, host_new(ATTNCL_I32, DIMS(8, 3)), NULL),
               ATTNCL_ERR_SHAPE, "rows of 2 tokens");
    ck_refused("sample_store_fwd", NULL, HOSTS(two, three, drawn, host_new(ATTNCL_I32, DIMS(8, 3))),
               ATTNCL_ERR_SHAPE, "window is [8, 3], expected rows of 2 tokens");
}
