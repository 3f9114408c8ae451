// SPDX-License-Identifier: MIT
// Backward pass of gated recurrent units, against the reference (tests/ref/gru_bwd.c) and against
// finite differences.

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/grad_test.h"

// The gates' errors are those of the forward op (test_gru.c); gradients are products of four such
// factors and a sum over 3 H rows of weights below 1 / (1 + H / 16), and pass on like states.
static double atol_for(int64_t width)
{
    return 16 * ((double)width + 20) * 6e-8 * 4;
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
    const struct gru_bwd_params params = {time_first ? ATTNCL_LAYOUT_TIME_FIRST
                                                     : ATTNCL_LAYOUT_BATCH_FIRST};
    const int64_t first = time_first ? s.n_steps : s.batch, second = s.n_steps + s.batch - first;
    struct host *xi = host_random(1, DIMS(first, second, 3 * s.width));
    struct host *weight = weight_for(s.width), *bias = host_random(3, DIMS(3 * s.width));
    struct host *y = host_new(ATTNCL_F32, DIMS(first, second, s.width)), *dy = host_like(y);
    struct host *got[4] = {host_like(xi), host_like(xi), host_like(y), h0 ? host_like(h0) : NULL};
    struct host *want[4] = {host_like(xi), host_like(xi), host_like(y), h0 ? host_like(h0) : NULL};

    ref_gru_fwd(xi, weight, bias, h0, time_first, y);
    for (int64_t i = 0; i < y->count; ++i) {
        y->data[i] = (float)y->data[i];
        dy->data[i] = (float)(i % 7 - 3) / 4;
    }
    ref_gru_bwd(xi, weight, bias, h0, time_first, y, dy, want[0], want[1], want[2], want[3]);
    ck_ok(run_op("gru_bwd", &params, HOSTS(xi, weight, bias, h0, y, dy), got, h0 ? 4 : 3));
    for (int i = 0; i < (h0 ? 4 : 3); ++i)
        ck_near(got[i], want[i], 1e-6, i == 2 ? 0 : atol_for(s.width));
}

TEST(matches_the_reference)
{
    static const struct shape shapes[] = {
        {1, 1, 1}, {5, 3, 7}, {3, 2, 16}, {4, 5, 33}, {2, 1, 300}};

    for (size_t i = 0; i < COUNT_OF(shapes); ++i) {
        const struct shape s = shapes[i];
        check(s, true, NULL);
        if (on_simulator() && s.width > 40) // minutes there, and the same kernels
            continue;
        check(s, false, host_random(4, DIMS(s.batch, s.width)));
        check(s, true, host_view(host_random(5, DIMS(s.batch, s.width))));
        check(s, false, NULL);
    }
}

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct gru_fwd_params *p = params;
    ref_gru_fwd(in[0], in[1], in[2], in[3], p->layout != ATTNCL_LAYOUT_BATCH_FIRST, out[0]);
}

TEST(meets_finite_differences)
{
    const struct gru_fwd_params tbc = {ATTNCL_LAYOUT_TIME_FIRST}, btc = {ATTNCL_LAYOUT_BATCH_FIRST};
    struct host *xi = host_random(6, DIMS(4, 3, 9)), *weight = host_random(7, DIMS(9, 3));
    struct host *bias = host_random(8, DIMS(9)), *h3 = host_random(9, DIMS(3, 3));

    ck_gradients("gru_fwd", &tbc, HOSTS(xi, weight, bias, h3), 0xf, forward, 1e-5);
    ck_gradients("gru_fwd", &btc, HOSTS(xi, weight, bias, NULL), 0x7, forward, 1e-5);
}

TEST(refusals)
{
    const struct gru_bwd_params p = {ATTNCL_LAYOUT_TIME_FIRST};
    struct host *xi = host_new(ATTNCL_F32, DIMS(4, 2, 9)), *y = host_new(ATTNCL_F32, DIMS(4, 2, 3));
    struct host *weight = host_new(ATTNCL_F32, DIMS(9, 3)), *bias = host_new(ATTNCL_F32, DIMS(9));
    struct host *dy = host_new(ATTNCL_F32, DIMS(4, 3, 3)), *w6 = host_new(ATTNCL_F32, DIMS(6, 2));

    ck_refused("gru_bwd", &p, HOSTS(xi, weight, bias, NULL, y, dy), ATTNCL_ERR_SHAPE,
               "y is [4, 2, 3], dy is [4, 3, 3]");
    ck_refused("gru_bwd", &p, HOSTS(xi, w6, bias, NULL, y, y), ATTNCL_ERR_SHAPE,
               "weight_hh is [6, 2]");
}
