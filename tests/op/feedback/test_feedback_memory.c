// SPDX-License-Identifier: MIT
// Mixing, keeping and gating a step's memory.

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// At most nine terms below 6 in size, with shares that sum to one: some roundings each.
static const double absolute = 9 * 6 * 6e-8;

static void check_mix(int n_x, int first, int n_weights, bool continued, int64_t width)
{
    struct host *weights = host_random(1, DIMS(n_weights));
    struct host *sum = continued ? host_random(2, DIMS(3, width)) : NULL;
    struct host *in[10] = {weights, sum}, *got = host_new(ATTNCL_F32, DIMS(3, width));
    struct host *want = host_like(got);
    const struct feedback_mix_fwd_params params = {first};

    for (int i = 0; i < n_x; ++i)
        in[2 + i] = host_random(10 + (unsigned)i, DIMS(3, width));
    ref_feedback_mix_fwd(weights, first, sum, in + 2, n_x, want);
    ck_op("feedback_mix_fwd", &params, in, 2 + n_x, HOSTS(want), 0, absolute);
}

TEST(values_are_mixed_by_their_weights)
{
    check_mix(1, 0, 1, false, 1);
    check_mix(7, 0, 7, false, 33);
    check_mix(8, 0, 9, false, 700);
    check_mix(1, 8, 9, true, 700);
    check_mix(3, 2, 8, true, 5);
}

TEST(weights_of_any_size)
{
    struct host *weights = host_new(ATTNCL_F32, DIMS(3)), *x = host_random(1, DIMS(4));
    struct host *other = host_random(2, DIMS(4));
    const struct feedback_mix_fwd_params params = {0};
    host_set(weights, (const double[]){-1e4, 1e4, -INFINITY});
    ck_op("feedback_mix_fwd", &params, HOSTS(weights, NULL, other, x, other), HOSTS(x), 0, 0);
}

static void check_store(double position, int64_t n_slots, int slot, int64_t width,
                        attncl_dtype dtype)
{
    enum { SLOTS = 5, BATCH = 2, HEADS = 3, PLACES = 4 };
    struct host *x = host_random(1, DIMS(BATCH, n_slots * HEADS * width));
    struct host *cache = host_random(2, DIMS(SLOTS, BATCH, HEADS, PLACES, width));
    if (dtype != ATTNCL_F32)
        host_stored(cache, dtype);
    struct host *want = host_copy(cache);
    const struct feedback_store_fwd_params params = {slot};

    for (int64_t i = 0; i < x->count && position >= 0 && position < PLACES; ++i) {
        const int64_t c = i % width, h = i / width % HEADS, s = i / width / HEADS % n_slots;
        const int64_t b = i / width / HEADS / n_slots;
        const int64_t row = ((slot + s) * BATCH + b) * HEADS + h;
        want->data[(row * PLACES + (int64_t)position) * width + c] = x->data[i];
    }
    ck_ok(run_op("feedback_store_fwd", &params, HOSTS(x, host_index(position), cache), NULL, 0));
    if (dtype != ATTNCL_F32)
        host_stored(want, dtype);
    ck_near(cache, want, 0, 0);
}

TEST(a_step_is_kept_at_its_place_and_nowhere_else)
{
    for (int t = -1; t < 6; ++t)
        check_store(t, 2, 1, 5, ATTNCL_F32);
    check_store(2, 5, 0, 1, ATTNCL_F32);
    check_store(3, 1, 4, 33, ATTNCL_F32);
    check_store(3, 1, 4, 33, ATTNCL_F16);
    check_store(2, 2, 1, 8, ATTNCL_BF16);
}

TEST(the_gate_opens_after_the_first_step)
{
    const double positions[] = {-1, 0, 1, 2147483647};
    for (int i = 0; i < 4; ++i) {
        struct host *x = host_random(1, DIMS(3, 7)), *want = host_like(x);
        for (int64_t j = 0; j < want->count; ++j)
            want->data[j] = positions[i] > 0;
        ck_op("feedback_gate_fwd", NULL, HOSTS(x, host_index(positions[i])), HOSTS(want), 0, 0);
    }
}

TEST(refusals)
{
    struct host *weights = host_new(ATTNCL_F32, DIMS(2)), *x = host_new(ATTNCL_F32, DIMS(2, 6));
    struct host *other = host_new(ATTNCL_F32, DIMS(2, 5));
    struct host *cache = host_new(ATTNCL_F32, DIMS(2, 2, 3, 4, 1));
    const struct feedback_mix_fwd_params late = {1};
    const struct feedback_store_fwd_params slot = {1};

    ck_refused("feedback_mix_fwd", &late, HOSTS(weights, NULL, x, x), ATTNCL_ERR_SHAPE,
               "weights has 2 elements, there are 3 values");
    ck_refused("feedback_mix_fwd", NULL, HOSTS(weights, NULL, x, other), ATTNCL_ERR_SHAPE,
               "values to mix are [2, 6] and [2, 5]");
    ck_refused("feedback_store_fwd", &slot, HOSTS(x, host_index(0), cache), ATTNCL_ERR_SHAPE,
               "x is [2, 6] from slot 1 on");
    ck_refused("feedback_store_fwd", NULL, HOSTS(other, host_index(0), cache), ATTNCL_ERR_SHAPE,
               "x is [2, 5], cache is [2, 2, 3, 4, 1]");
    ck_refused("feedback_gate_fwd", NULL, HOSTS(x, x), ATTNCL_ERR_DTYPE, "position is F32");
}
