// SPDX-License-Identifier: MIT
// A step of multi-head attention against its reference (tests/ref/attention_step.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// A score of D products of entries below 5 rounds D + 2 times; weights feel it twice, and a sum of
// t terms of values below 5 besides.
static double atol_for(int64_t width, int64_t limit, double scale)
{
    return (2 * scale * (double)((width + 2) * width) * 25 + (double)limit + 16) * 6e-8 * 5;
}

static void check(int64_t limit, int64_t batch, int64_t n_heads, int64_t width, bool as_view,
                  double position)
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

TEST(matches_the_reference)
{
    check(1, 1, 1, 1, false, 0);
    for (int t = 0; t < 9; t += 2)
        check(9, 2, 3, 7, t % 4 == 0, t);
    check(140, 2, 2, 33, true, 130);
    check(66, 1, 4, 64, false, 65);
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
    p.n_heads = 4;
    ck_refused("attention_step_fwd", &p, HOSTS(q, q, q, at, cache, cache), ATTNCL_ERR_SHAPE,
               "C = 6 cannot be cut into H = 4 heads");
}
