// SPDX-License-Identifier: MIT
// A step of multi-head attention against its reference (tests/ref/attention_step.c).

#include "op/attention/attention_split.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

// A score that exceeds all others by far, in any part, decides alone.
TEST(one_score_may_outweigh_the_rest)
{
    const struct attention_step_fwd_params params = {.scale = 1, .n_heads = 1};
    for (int64_t at = 0; at < 200; at += 66) {
        struct host *q = host_new(ATTNCL_F32, DIMS(1, 4)), *got = host_like(q);
        struct host *keys = host_new(ATTNCL_F32, DIMS(200, 1, 4));
        struct host *values = host_random(1, DIMS(200, 1, 4));
        q->data[0] = 1000;
        for (int64_t j = 0; j < 200; ++j)
            keys->data[4 * j] = j == at ? 500 : -500;
        struct host *k = host_new(ATTNCL_F32, DIMS(1, 4)), *v = host_random(2, DIMS(1, 4));
        k->data[0] = at == 199 ? 500 : -500;
        ck_ok(run_op("attention_step_fwd", &params, HOSTS(q, k, v, host_index(199), keys, values),
                     HOSTS(got)));
        for (int c = 0; c < 4; ++c)
            ck_assert_double_eq(got->data[c], at == 199 ? v->data[c] : values->data[4 * at + c]);
    }
}

// The first keys, more than a chunk of them, count nothing; the others count alike.
TEST(scores_may_begin_with_minus_infinity)
{
    enum { N = 200, FIRST = 150 };
    const struct attention_step_fwd_params params = {.scale = 1, .n_heads = 1};
    struct host *q = host_new(ATTNCL_F32, DIMS(1, 4)), *got = host_like(q), *k = host_like(q);
    struct host *keys = host_new(ATTNCL_F32, DIMS(N, 1, 4));
    struct host *values = host_random(1, DIMS(N, 1, 4)), *v = host_random(2, DIMS(1, 4));

    for (int c = 0; c < 4; ++c)
        q->data[c] = 1;
    for (int64_t j = 0; j < FIRST; ++j)
        keys->data[4 * j] = -INFINITY;
    ck_ok(run_op("attention_step_fwd", &params, HOSTS(q, k, v, host_index(N - 1), keys, values),
                 HOSTS(got)));
    for (int c = 0; c < 4; ++c) {
        double mean = v->data[c] / (N - FIRST);
        for (int64_t j = FIRST; j < N - 1; ++j)
            mean += values->data[4 * j + c] / (N - FIRST);
        ck_assert_double_eq_tol(got->data[c], mean, 1e-6);
    }
}

// On a GPU one sequence of 8 heads has work for 64 work-groups and more at 1024 positions; a device of
// more compute units gets two for each of them, and a large batch no more than one for a head.
TEST(keys_are_shared_out_to_a_whole_gpu)
{
    const struct device_caps small = {.variant = VARIANT_GPU, .compute_units = 2};
    const struct device_caps large = {.variant = VARIANT_GPU, .compute_units = 132};

    ck_assert_int_eq(attncl__step_parts(&small, 8, 1024), 8);
    ck_assert_int_eq(attncl__step_parts(&small, 8, 100), 4);
    ck_assert_int_eq(attncl__step_parts(&small, 64, 1024), 1);
    ck_assert_int_eq(attncl__step_parts(&small, 1, 1 << 20), 64);
    ck_assert_int_eq(attncl__step_parts(&large, 8, 1024), 32);
    ck_assert_int_eq(attncl__step_parts(&large, 8, 2048), 33);
    ck_assert_int_eq(attncl__step_parts(&large, 512, 2048), 1);
    ck_assert_int_eq(attncl__step_parts(&small, 0, 2048), 1);
}
