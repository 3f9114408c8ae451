// SPDX-License-Identifier: MIT
// Backward pass of a feedback transformer's memory, against the reference
// (tests/ref/feedback_memory_bwd.c) and against finite differences.

#include <math.h>

#include "ref/ref.h"
#include "support/grad_test.h"

TEST(mix_matches_the_reference)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {8, 2, 40}, {5, 3, 700}};

    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        const int n = (int)shapes[i][0];
        const struct feedback_mix_bwd_params params = {2};
        struct host *weights = host_random(1, DIMS(n + 3)), *x[8] = {0};
        struct host *dy = host_random(2, DIMS(shapes[i][1], shapes[i][2]));
        struct host *dx = host_new(ATTNCL_F32, DIMS(n, shapes[i][1], shapes[i][2]));
        struct host *got_dx = host_like(dx), *dweights = host_like(weights);
        struct host *got_dweights = host_like(weights);

        for (int k = 0; k < n; ++k)
            x[k] = host_random(3u + (unsigned)k, DIMS(shapes[i][1], shapes[i][2]));
        ref_feedback_mix_bwd(weights, 2, x, n, dy, dx, dweights);
        ck_ok(run_op("feedback_mix_bwd", &params,
                     HOSTS(weights, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], dy),
                     HOSTS(got_dx, got_dweights)));
        ck_near(got_dx, dx, 1e-6, 1e-7);
        // A product is a sum of B C terms below 1.
        ck_near(got_dweights, dweights, 1e-6, 6e-8 * (double)(dy->count + 20));
    }
}

static void mix_forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct feedback_mix_fwd_params *p = params;
    ref_feedback_mix_fwd(in[0], p->first, in[1], in + 2, 3, out[0]);
}

TEST(mix_meets_finite_differences)
{
    const struct feedback_mix_fwd_params params = {1};
    struct host *weights = host_random(1, DIMS(5)), *sum = host_random(2, DIMS(3, 5));
    struct host *a = host_random(3, DIMS(3, 5)), *b = host_random(4, DIMS(3, 5));
    struct host *c = host_random(5, DIMS(3, 5));

    ck_gradients("feedback_mix_fwd", &params, HOSTS(weights, sum, a, b, c), 0x1f, mix_forward,
                 1e-5);
}

// Slots, B, H, limit, D = 4, 2, 3, 5, 6; places 0 .. 3 were read by later steps.
TEST(load_gives_what_a_step_stored)
{
    const struct feedback_load_fwd_params params = {1, 2, 5};
    struct host *cache = host_random(1, DIMS(4, 2, 3, 5, 6)),
                *y = host_new(ATTNCL_F32, DIMS(2, 36));
    struct host *position = host_new(ATTNCL_I32, DIMS(1));

    for (int place = -1; place < 6; ++place) {
        position->data[0] = place;
        ck_ok(run_op("feedback_load_fwd", &params, HOSTS(cache, position), HOSTS(y)));
        for (int64_t i = 0; i < y->count; ++i) {
            const int64_t b = i / 36, slot = 1 + i / 18 % 2, h = i / 6 % 3, c = i % 6;
            const double want = place < 0 || place > 3
                                    ? 0
                                    : cache->data[(((slot * 2 + b) * 3 + h) * 5 + place) * 6 + c];
            ck_assert_double_eq(y->data[i], want);
        }
    }
}

TEST(refusals)
{
    const struct feedback_load_fwd_params params = {3, 2, 5};
    const struct feedback_mix_bwd_params far = {4};
    struct host *cache = host_new(ATTNCL_F32, DIMS(4, 2, 3, 5, 6));
    struct host *position = host_new(ATTNCL_I32, DIMS(1)), *w = host_new(ATTNCL_F32, DIMS(4));
    struct host *x = host_new(ATTNCL_F32, DIMS(2, 3)), *dy = host_new(ATTNCL_F32, DIMS(3, 3));

    ck_refused("feedback_load_fwd", &params, HOSTS(cache, position), ATTNCL_ERR_SHAPE,
               "2 slots from slot 3 on");
    ck_refused("feedback_mix_bwd", &far, HOSTS(w, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, x),
               ATTNCL_ERR_SHAPE, "weights has 4 elements");
    ck_refused("feedback_mix_bwd", NULL, HOSTS(w, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, dy),
               ATTNCL_ERR_SHAPE, "dy is [3, 3], x is [2, 3]");
}
