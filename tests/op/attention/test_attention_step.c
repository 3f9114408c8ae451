// SPDX-License-Identifier: MIT
// A step of multi-head attention against its reference (tests/ref/attention_step.c).

#include <math.h>

#include "op/attention/attention_split.h"
#include "ref/ref.h"
#include "support/op_test.h"

// A score of D products of entries below 5 rounds D + 2 times; weights feel it twice, and a sum of
// t terms of values below 5 besides.
static double atol_for(int64_t width, int64_t limit, double scale)
{
    return (2 * scale * (double)((width + 2) * width) * 25 + (double)limit + 16) * 6e-8 * 5;
}

static void check_of(attncl_dtype dtype, int64_t limit, int64_t batch, int64_t n_heads,
                     int64_t width, bool as_view, double position)
{
    const struct attention_step_fwd_params params = {(float)(1 / sqrt((double)width)),
                                                     (int32_t)n_heads};
    struct host *q = host_random(1, DIMS(batch, n_heads * width)),
                *k = host_random(2, q->rank, q->dim);
    struct host *v = host_random(3, q->rank, q->dim), *at = host_index(position);
    struct host *keys = host_random(4, DIMS(limit, batch, n_heads * width));
    struct host *values = host_random(5, keys->rank, keys->dim), *got = host_like(q);
    struct host *want = host_like(q);
    const int64_t t = position < 0 ? 0 : position >= (double)limit ? limit - 1 : (int64_t)position;

    if (dtype != ATTNCL_F32) {
        host_stored(keys, dtype);
        host_stored(values, dtype);
    }
    for (int64_t i = (t + 1) * q->count; i < keys->count; ++i)
        keys->data[i] = values->data[i] = NAN; // what is to come is not looked at
    struct host *keys_after = host_copy(keys), *values_after = host_copy(values);
    ref_attention_step_fwd(q, k, v, t, n_heads, params.scale, keys_after, values_after, want);
    q->as_view = k->as_view = v->as_view = as_view;
    ck_ok(run_op("attention_step_fwd", &params, HOSTS(q, k, v, at, keys, values), HOSTS(got)));
    ck_near(got, want, 0, atol_for(width, limit, params.scale));
    for (int64_t i = 0; i < (t + 1) * q->count; ++i) {
        ck_assert(keys->data[i] == keys_after->data[i]);
        ck_assert(values->data[i] == values_after->data[i]);
    }
    for (int64_t i = (t + 1) * q->count; i < keys->count; ++i)
        ck_assert(isnan(keys->data[i]) && isnan(values->data[i]));
}

static void check(int64_t limit, int64_t batch, int64_t n_heads, int64_t width, bool as_view,
                  double position)
{
    check_of(ATTNCL_F32, limit, batch, n_heads, width, as_view, position);
}

TEST(matches_the_reference)
{
    check(1, 1, 1, 1, false, 0);
    for (int t = 0; t < 9; t += 2)
        check(9, 2, 3, 7, t % 4 == 0, t);
    check(140, 2, 2, 33, true, 130);
    check(66, 1, 4, 64, false, 65);
}

// Parts that are full, cut short, and not there yet; more of them than work-groups are wanted for.
TEST(parts_of_the_keys_add_up)
{
    static const int positions[] = {0, 32, 33, 300, 1023};
    for (size_t i = 0; i < COUNT_OF(positions); i += on_simulator() ? 2 : 1) {
        check(1024, 1, 2, 12, false, positions[i]);
        check(1024, 2, 1, 129, true, positions[i]);
    }
}

// The caches have other values than those given: the nearest of their type.
TEST(caches_of_16_bits)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    for (size_t i = 0; i < COUNT_OF(dtypes); ++i) {
        check_of(dtypes[i], 1, 1, 1, 1, false, 0);
        for (int t = 0; t < 9; t += 4)
            check_of(dtypes[i], 9, 2, 3, 7, t == 4, t);
        check_of(dtypes[i], 140, 2, 2, 33, true, 130);
        check_of(dtypes[i], 66, 1, 4, 64, false, 65);
        check_of(dtypes[i], 40, 1, 2, 24, true, 39);
        check_of(dtypes[i], 1024, 1, 2, 12, false, 1023);
    }
}

// A score that exceeds all others by far, in any part, decides alone.
TEST(one_score_may_outweigh_the_rest)
{
    const struct attention_step_fwd_params params = {1, 1};
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

TEST(a_position_outside_counts_as_the_nearest)
{
    check(4, 2, 1, 5, false, 4);
    check(4, 2, 1, 5, false, -1);
}

TEST(refusals)
{
    struct attention_step_fwd_params p = {1, 2};
    struct host *q = host_new(ATTNCL_F32, DIMS(2, 6)), *other = host_new(ATTNCL_F32, DIMS(2, 5));
    struct host *at = host_new(ATTNCL_I32, DIMS(1)), *cache = host_new(ATTNCL_F32, DIMS(4, 2, 6));
    struct host *narrow = host_new(ATTNCL_F32, DIMS(4, 2, 5));

    ck_refused("attention_step_fwd", &p, HOSTS(q, other, q, at, cache, cache), ATTNCL_ERR_SHAPE,
               "k is [2, 5], q is [2, 6]");
    ck_refused("attention_step_fwd", &p, HOSTS(q, q, q, at, cache, narrow), ATTNCL_ERR_SHAPE,
               "the cache of values is [4, 2, 5], q is [2, 6]");
    struct host *half = host_stored(host_new(ATTNCL_F32, DIMS(4, 2, 6)), ATTNCL_F16);
    ck_refused("attention_step_fwd", &p, HOSTS(q, q, q, at, cache, half), ATTNCL_ERR_DTYPE,
               "the cache of keys is F32, that of values F16");
    p.n_heads = 4;
    ck_refused("attention_step_fwd", &p, HOSTS(q, q, q, at, cache, cache), ATTNCL_ERR_SHAPE,
               "C = 6 cannot be cut into H = 4 heads");
}
