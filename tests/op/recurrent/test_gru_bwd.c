// SPDX-License-Identifier: MIT
// Backward pass of gated recurrent units, against the reference (tests/ref/gru_bwd.c) and against
// finite differences.

#include <math.h>

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

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// r, z, hh_n and n of every step, as the forward op keeps them.
static struct host *gates_of(const struct host *xi, const struct host *weight,
                             const struct host *bias, const struct host *h0, bool time_first,
                             const struct host *y)
{
    const int64_t width = weight->dim[1], n_steps = y->dim[!time_first], batch = y->dim[time_first];
    struct host *gates = host_new(ATTNCL_F32, DIMS(y->dim[0], y->dim[1], 4 * width));

    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t row = i / width, c = i % width;
        const int64_t t = time_first ? row / batch : row % n_steps;
        const int64_t b = time_first ? row % batch : row / n_steps;
        const double *h = t > 0 ? y->data + (time_first ? row - batch : row - 1) * width
                          : h0  ? h0->data + b * width
                                : NULL;
        const double *x = xi->data + row * 3 * width + c;
        double *gate = gates->data + row * 4 * width + c, hh[3];
        for (int64_t k = 0; k < 3; ++k) {
            hh[k] = bias->data[k * width + c];
            for (int64_t j = 0; h && j < width; ++j)
                hh[k] += weight->data[(k * width + c) * width + j] * h[j];
        }
        gate[0] = (float)sigmoid(x[0] + hh[0]);
        gate[width] = (float)sigmoid(x[width] + hh[1]);
        gate[2 * width] = (float)hh[2];
        gate[3 * width] = (float)tanh(x[2 * width] + gate[0] * hh[2]);
    }
    return gates;
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
    struct host *gates = gates_of(xi, weight, bias, h0, time_first, y);
    ref_gru_bwd(xi, weight, bias, h0, time_first, y, dy, want[0], want[1], want[2], want[3]);
    ck_ok(run_op("gru_bwd", &params, HOSTS(weight, h0, y, gates, dy), got, h0 ? 4 : 3));
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
    struct host *weight = host_new(ATTNCL_F32, DIMS(9, 3)),
                *y = host_new(ATTNCL_F32, DIMS(4, 2, 3));
    struct host *gates = host_new(ATTNCL_F32, DIMS(4, 2, 12)),
                *dy = host_new(ATTNCL_F32, DIMS(4, 3, 3));
    struct host *w6 = host_new(ATTNCL_F32, DIMS(6, 2)), *g9 = host_new(ATTNCL_F32, DIMS(4, 2, 9));

    ck_refused("gru_bwd", &p, HOSTS(weight, NULL, y, gates, dy), ATTNCL_ERR_SHAPE,
               "y is [4, 2, 3], dy is [4, 3, 3]");
    ck_refused("gru_bwd", &p, HOSTS(weight, NULL, y, g9, y), ATTNCL_ERR_SHAPE,
               "y is [4, 2, 3], gates is [4, 2, 9]");
    ck_refused("gru_bwd", &p, HOSTS(w6, NULL, y, gates, y), ATTNCL_ERR_SHAPE,
               "weight_hh is [6, 2]");
}
