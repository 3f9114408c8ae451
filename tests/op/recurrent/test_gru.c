// SPDX-License-Identifier: MIT
// Gated recurrent units against their reference (tests/ref/gru.c).

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_test.h"

// A gate's argument: H products of a state within [-1, 1] (that of h0 aside) by weights of about
// 1 / sqrt(H), H + 2 roundings of at most its size; sigmoid and tanh have slopes of at most 1.  The
// error of a step passes to the next with weights whose rows sum to at most sqrt(H) or so: with
// updates that halve it, some 4 steps' worth remains.
static double atol_for(int64_t width)
{
    return 4 * ((double)width + 20) * 6e-8 * 4;
}

struct shape {
    int64_t n_steps, batch, width;
};

static struct host *weight_for(int64_t width)
{
    struct host *weight = host_random(2, DIMS(3 * width, width));
    host_scale(weight, 0.5 / (1 + (double)width / 16));
    return weight;
}

static void check(struct shape s, bool time_first, struct host *h0)
{
    const struct gru_fwd_params params = {time_first ? ATTNCL_LAYOUT_TIME_FIRST
                                                     : ATTNCL_LAYOUT_BATCH_FIRST};
    const int64_t first = time_first ? s.n_steps : s.batch, second = s.n_steps + s.batch - first;
    struct host *xi = host_random(1, DIMS(first, second, 3 * s.width));
    struct host *weight = weight_for(s.width), *bias = host_random(3, DIMS(3 * s.width));
    struct host *want = host_new(ATTNCL_F32, DIMS(first, second, s.width));

    ref_gru_fwd(xi, weight, bias, h0, time_first, want);
    ck_op("gru_fwd", &params, HOSTS(xi, weight, bias, h0), HOSTS(want), 1e-6, atol_for(s.width));
}

TEST(matches_the_reference)
{
    static const struct shape shapes[] = {
        {1, 1, 1}, {5, 3, 7}, {3, 2, 16}, {4, 5, 33}, {2, 9, 64}, {2, 1, 300},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        const struct shape s = shapes[i];
        check(s, true, NULL);
        if (on_simulator() && s.width > 40) // minutes there, and the same kernels
            continue;
        check(s, false, host_random(4, DIMS(s.batch, s.width)));
        check(s, true, host_view(host_random(5, DIMS(s.batch, s.width))));
    }
}

// Gates are 0 or 1: the state stays, or is +-1.
TEST(extremes)
{
    const struct gru_fwd_params params = {ATTNCL_LAYOUT_TIME_FIRST};
    enum { H = 20 };
    struct host *xi = host_random(1, DIMS(3, 2, 3 * H)), *weight = weight_for(H);
    struct host *bias = host_random(3, DIMS(3 * H)), *h0 = host_uniform(4, -1e4, 1e4, DIMS(2, H));
    struct host *want = host_new(ATTNCL_F32, DIMS(3, 2, H));

    host_scale(xi, 1e4);
    ref_gru_fwd(xi, weight, bias, h0, true, want);
    ck_op("gru_fwd", &params, HOSTS(xi, weight, bias, h0), HOSTS(want), 1e-6, 1e-6);
    for (int64_t i = 0; i < xi->count; ++i)
        xi->data[i] = i % 3 ? 3e38 : -3e38;
    ref_gru_fwd(xi, weight, bias, NULL, true, want);
    ck_op("gru_fwd", &params, HOSTS(xi, weight, bias), HOSTS(want), 1e-6, 1e-6);
}

TEST(empty_is_fine)
{
    check((struct shape){0, 2, 3}, true, NULL);
    check((struct shape){2, 0, 3}, false, NULL);
}

TEST(refusals)
{
    const struct gru_fwd_params p = {ATTNCL_LAYOUT_TIME_FIRST}, odd = {7};
    struct host *xi = host_new(ATTNCL_F32, DIMS(4, 2, 9));
    struct host *weight = host_new(ATTNCL_F32, DIMS(9, 3)), *w8 = host_new(ATTNCL_F32, DIMS(8, 3));
    struct host *bias = host_new(ATTNCL_F32, DIMS(9)), *b3 = host_new(ATTNCL_F32, DIMS(3));
    struct host *h0 = host_new(ATTNCL_F32, DIMS(4, 3)), *x6 = host_new(ATTNCL_F32, DIMS(4, 2, 6));

    ck_refused("gru_fwd", &p, HOSTS(xi, w8, bias), ATTNCL_ERR_SHAPE, "weight_hh is [8, 3]");
    ck_refused("gru_fwd", &p, HOSTS(xi, weight, b3), ATTNCL_ERR_SHAPE,
               "bias_hh is [3], weight_hh is [9, 3]");
    ck_refused("gru_fwd", &p, HOSTS(x6, weight, bias), ATTNCL_ERR_SHAPE,
               "xi has 6 channels, weight_hh is [9, 3]");
    ck_refused("gru_fwd", &p, HOSTS(xi, weight, bias, h0), ATTNCL_ERR_SHAPE,
               "h0 is [4, 3], expected [2, 3]");
    ck_refused("gru_fwd", &odd, HOSTS(xi, weight, bias), ATTNCL_ERR_ARGUMENT, "layout 7");
}
