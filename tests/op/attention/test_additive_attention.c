// SPDX-License-Identifier: MIT
// Additive attention, with and without its weights, against its reference
// (tests/ref/additive_attention.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// A score has N terms w tanh: the argument rounds once at the size of q + k (its slope is at most
// 1), tanh 3 times, and the sum N times; a weight feels it twice.
static void check_values(struct host *q, struct host *k, struct host *v, struct host *w,
                         struct host *lens)
{
    struct host *got = host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], v->dim[2]));
    struct host *p = host_new(ATTNCL_F32, DIMS(q->dim[0], q->dim[1], k->dim[1]));
    struct host *want = host_like(got), *want_p = host_like(p);
    const struct additive_attention_fwd_params with_weights = {.want_weights = true};
    const double n = (double)q->dim[2], argument = fmin(host_largest(q) + host_largest(k), 10);
    const double score_error = n * host_largest(w) * (argument + n + 4) * 6e-8;
    const double relative = 2 * score_error + ((double)k->dim[1] + 16) * 6e-8;

    ref_additive_attention(q, k, v, w, lens, want, want_p);
    ck_ok(run_op("additive_attention_fwd", NULL, HOSTS(q, k, v, w, lens), HOSTS(got)));
    ck_near(got, want, 0, relative * host_largest(v));
    ck_ok(run_op("additive_attention_fwd", &with_weights, HOSTS(q, k, v, w, lens), HOSTS(got, p)));
    ck_near(got, want, 0, relative * host_largest(v));
    ck_near(p, want_p, relative, 1e-37);
}

static void check(int64_t batch, int64_t n_queries, int64_t n_keys, int64_t n, int64_t width,
                  struct host *lens)
{
    struct host *w = n % 2 ? host_random(4, DIMS(n)) : host_random(4, DIMS(1, n));

    check_values(host_view(host_random(1, DIMS(batch, n_queries, n))),
                 host_random(2, DIMS(batch, n_keys, n)),
                 host_view(host_random(3, DIMS(batch, n_keys, width))), w, lens);
}

TEST(matches_the_reference)
{
    check(1, 1, 1, 1, 1, NULL);
    check(2, 3, 5, 4, 6, NULL);
    check(3, 2, 70, 33, 17, NULL);
    check(1, 2, 130, 64, 100, NULL);
}

static void check_dropped(int64_t n_keys, double p, int64_t position, struct host *lens)
{
    const struct ref_dropout d = {p, 0x123456789u, 5, 77};
    const struct additive_attention_fwd_params params = {true,
                                                         {.p = p, .seed = d.seed, .site = d.site}};
    struct host *q = host_random(1, DIMS(4, 3, 6)), *k = host_random(2, DIMS(4, n_keys, 6));
    struct host *v = host_random(3, DIMS(4, n_keys, 20)), *w = host_random(4, DIMS(6));
    struct host *got = host_new(ATTNCL_F32, DIMS(4, 3, 20)), *want = host_like(got);
    struct host *p_got = host_new(ATTNCL_F32, DIMS(4, 3, n_keys)), *p_want = host_like(p_got);
    struct host *dropped = host_like(p_got), *step = host_new(ATTNCL_I32, 0, NULL);

    step->data[0] = d.step;
    ref_additive_attention(q, k, v, w, lens, want, p_want);
    ref_dropout_fwd(&d, p_want, position < 0 ? 0 : position, NULL, dropped);
    for (int64_t i = 0; i < want->count; ++i) {
        const int64_t row = i / 20, first = row / 3 * n_keys;
        want->data[i] = 0;
        for (int64_t j = 0; j < n_keys; ++j)
            want->data[i] += dropped->data[row * n_keys + j] * v->data[(first + j) * 20 + i % 20];
    }
    ck_ok(run_op("additive_attention_fwd", &params,
                 HOSTS(q, k, v, w, lens, step, position < 0 ? NULL : host_index((double)position)),
                 HOSTS(got, p_got)));
    ck_near(got, want, 0, 2e-5 * host_largest(v)); // as check_values(), times 1 / (1 - p)
    ck_near(p_got, p_want, 1e-5, 1e-37);
}

// The weights that are asked for are those before dropout.
TEST(weights_are_dropped)
{
    struct host *lens = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4));

    for (int64_t n_keys = 1; n_keys < 6; ++n_keys)
        check_dropped(n_keys, 0.3, -1, NULL);
    check_dropped(130, 0.3, 5, NULL);
    check_dropped(131, 0.5, 3, lens);
    check_dropped(9, 1, -1, NULL);
}

TEST(lengths)
{
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 5));

    check(4, 5, 140, 7, 9, one);
    check(4, 5, 140, 8, 20, two);
}

// tanh is +-1 in float far out: the scores are +-w.
TEST(extremes)
{
    static const double factors[] = {30, 1e4, -1e6, -1.00001e6, -3e6};
    struct host *lens = host_with(ATTNCL_I32, (const double[]){2, 31, 69}, DIMS(1, 3));

    for (size_t i = 0; i < COUNT_OF(factors); ++i) {
        struct host *q = host_new(ATTNCL_F32, DIMS(1, 3, 1)),
                    *k = host_new(ATTNCL_F32, DIMS(1, 70, 1));
        struct host *w = host_new(ATTNCL_F32, DIMS(1)), *v = host_random(3, DIMS(1, 70, 4));
        struct host *got = host_new(ATTNCL_F32, DIMS(1, 3, 4)), *want = host_like(got);
        struct host *p = host_new(ATTNCL_F32, DIMS(1, 3, 70));
        for (int64_t j = 0; j < 70; ++j)
            k->data[j] = j % 3 == 0 ? -1e4 : 1e4;
        w->data[0] = factors[i];
        ref_additive_attention(q, k, v, w, lens, want, p);
        ck_ok(run_op("additive_attention_fwd", NULL, HOSTS(q, k, v, w, lens), HOSTS(got)));
        ck_near(got, want, 0, 100 * 6e-8 * host_largest(v)); // exact scores, sums of 70 terms
    }
}

TEST(empty_is_fine)
{
    check(0, 2, 3, 4, 5, NULL);
    check(2, 0, 3, 4, 5, NULL);
    check(2, 3, 0, 4, 5, NULL); // no key: zeros
}

TEST(refusals)
{
    struct host *q = host_new(ATTNCL_F32, DIMS(2, 3, 6)), *k = host_new(ATTNCL_F32, DIMS(2, 5, 6));
    struct host *v = host_new(ATTNCL_F32, DIMS(2, 4, 7)), *k7 = host_new(ATTNCL_F32, DIMS(2, 4, 7));
    struct host *w = host_new(ATTNCL_F32, DIMS(6)), *w2 = host_new(ATTNCL_F32, DIMS(2, 3));
    struct host *lens = host_new(ATTNCL_I32, DIMS(3));

    ck_refused("additive_attention_fwd", NULL, HOSTS(q, k7, v, w), ATTNCL_ERR_SHAPE,
               "k has N = 7, q has N = 6");
    ck_refused("additive_attention_fwd", NULL, HOSTS(q, k, v, w), ATTNCL_ERR_SHAPE,
               "v has S = 4, k has S = 5");
    ck_refused("additive_attention_fwd", NULL, HOSTS(q, k, k, w2), ATTNCL_ERR_SHAPE, "w is [2, 3]");
    ck_refused("additive_attention_fwd", NULL, HOSTS(q, k, k, w, lens), ATTNCL_ERR_SHAPE,
               "axis 0 of valid_lens is 3, expected B = 2");
}
