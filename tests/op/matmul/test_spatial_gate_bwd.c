// SPDX-License-Identifier: MIT
// The gradients of the spatial gate against finite differences of its reference
// (tests/ref/spatial_gate.c): it is linear in each of its inputs, so that differences are exact but
// for rounding in double.

#include "ref/ref.h"
#include "support/grad_test.h"

static void forward(const void *params, struct host *const *in, struct host *const *out)
{
    const struct spatial_gate_fwd_params *p = params;
    ref_spatial_gate_fwd(in[0], in[1], in[2], in[3], in[4], p->causal, out[0]);
}

// A sequence shorter than the matrix; sums of at most 14 products.
static void check(const struct spatial_gate_fwd_params *params, struct host *mask)
{
    struct host *w = host_random(1, DIMS(7, 7)), *bias = host_random(2, DIMS(7));
    struct host *u = host_random(3, DIMS(5, 2, 7)), *z1 = host_random(4, DIMS(5, 2, 7));

    ck_gradients("spatial_gate_fwd", params, HOSTS(w, bias, u, z1, mask), 017, forward, 4e-6);
}

TEST(meets_finite_differences)
{
    const struct spatial_gate_fwd_params plain = {0}, causal = {1};

    check(&plain, NULL);
    check(&causal, NULL);
    check(&plain, host_mask(5, 0.5, DIMS(5, 5, 1)));
    check(&plain, host_mask(6, 0.5, DIMS(1, 5, 1)));
}

// Under a causal mask rows are multiplied in blocks, each with what it sees.
TEST(blocks_of_causal_rows)
{
    const struct spatial_gate_fwd_params causal = {1};
    const int steps = on_simulator() ? 50 : 101;
    struct host *w = host_random(1, DIMS(steps + 2, steps + 2)),
                *bias = host_random(2, DIMS(steps + 2));
    struct host *u = host_random(3, DIMS(steps, 1, 2)), *z1 = host_random(4, DIMS(steps, 1, 2));

    ck_gradients("spatial_gate_fwd", &causal, HOSTS(w, bias, u, z1, NULL), 017, forward, 2e-5);
}

TEST(refusals)
{
    const struct spatial_gate_fwd_params plain = {0};
    struct host *w = host_new(ATTNCL_F32, DIMS(3, 3)), *x = host_new(ATTNCL_F32, DIMS(5, 2, 7));

    ck_refused("spatial_gate_bwd_input", &plain, HOSTS(w, x), ATTNCL_ERR_SHAPE, "[5, 2, 7]");
    ck_refused("spatial_gate_bwd_gate", NULL, HOSTS(x, x, x), ATTNCL_ERR_SHAPE, "s is");
}
