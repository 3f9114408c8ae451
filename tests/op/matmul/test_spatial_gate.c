// SPDX-License-Identifier: MIT
// The spatial gate against its reference (tests/ref/spatial_gate.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

static struct host *sizes_of(const struct host *h)
{
    struct host *sizes = host_like(h);
    for (int64_t i = 0; i < h->count; ++i)
        sizes->data[i] = fabs(h->data[i]);
    return sizes;
}

// A product of T terms, a bias and a factor: T + 3 roundings at most, each of the size that the
// result would have if no sign cancelled.
static void check_values(struct host *weight, struct host *bias, struct host *u, struct host *z1,
                         struct host *mask, bool causal)
{
    const struct spatial_gate_fwd_params params = {causal};
    struct host *got = host_new(ATTNCL_F32, u->rank, u->dim), *want = host_like(got);
    struct host *sizes = host_like(got);
    double largest = 0;

    ref_spatial_gate_fwd(weight, bias, u, z1, mask, causal, want);
    ref_spatial_gate_fwd(sizes_of(weight), sizes_of(bias), sizes_of(u), sizes_of(z1), mask, causal,
                         sizes);
    for (int64_t i = 0; i < sizes->count; ++i)
        largest = fmax(largest, sizes->data[i]);
    ck_op("spatial_gate_fwd", &params, HOSTS(weight, bias, u, z1, mask), HOSTS(want), 0,
          (double)(u->dim[0] + 3) * 6e-8 * largest);
}

static void check(int64_t n, int64_t length, int64_t batch, int64_t channels, struct host *mask,
                  bool causal)
{
    struct host *z1 = host_view(host_random(4, DIMS(length, batch, channels)));

    check_values(host_random(1, DIMS(n, n)), host_random(2, DIMS(n)),
                 host_random(3, DIMS(length, batch, channels)), z1, mask, causal);
}

LOOP_TEST(matches_the_reference, 0, 2)
{
    const bool causal = _i == 1;

    check(1, 1, 1, 1, NULL, causal);
    check(9, 7, 2, 5, NULL, causal);
    check(9, 9, 1, 64, NULL, causal);
    check(40, 37, 3, 19, NULL, causal);
    check(130, 130, 1, 70, NULL, causal);
}

LOOP_TEST(masks, 0, 2)
{
    const bool causal = _i == 1;

    check(9, 7, 2, 5, host_mask(5, 0.5, DIMS(7, 7, 1)), causal);
    check(9, 7, 2, 5, host_mask(5, 0.5, DIMS(1, 7, 1)), causal);
    check(9, 9, 2, 5, host_new(ATTNCL_U8, DIMS(9, 9, 1)), causal); // nothing seen: the bias alone
    check(70, 66, 1, 17, host_mask(6, 0.3, DIMS(66, 66, 1)), causal);
}

TEST(later_positions_do_not_leak)
{
    struct host *weight = host_random(1, DIMS(20, 20)), *u = host_random(3, DIMS(20, 2, 6));

    for (int i = 0; i < 20; ++i)
        for (int j = i + 1; j < 20; ++j)
            weight->data[i * 20 + j] = NAN;
    check_values(weight, host_random(2, DIMS(20)), u, host_random(4, DIMS(20, 2, 6)), NULL, true);
}

TEST(empty_is_fine)
{
    check(5, 0, 2, 3, NULL, false);
    check(5, 3, 0, 3, NULL, true);
}

TEST(refusals)
{
    const struct spatial_gate_fwd_params params = {0};
    struct host *weight = host_new(ATTNCL_F32, DIMS(4, 4)),
                *oblong = host_new(ATTNCL_F32, DIMS(4, 5));
    struct host *bias = host_new(ATTNCL_F32, DIMS(4)), *bias5 = host_new(ATTNCL_F32, DIMS(5));
    struct host *u = host_new(ATTNCL_F32, DIMS(3, 2, 6)), *z = host_new(ATTNCL_F32, DIMS(3, 2, 5));
    struct host *u5 = host_new(ATTNCL_F32, DIMS(5, 2, 6));
    struct host *batched = host_new(ATTNCL_U8, DIMS(3, 3, 2));
    struct host *tall = host_new(ATTNCL_U8, DIMS(2, 3, 1)),
                *wide = host_new(ATTNCL_U8, DIMS(3, 4, 1));

    ck_refused("spatial_gate_fwd", &params, HOSTS(oblong, bias, u, u), ATTNCL_ERR_SHAPE,
               "weight is [4, 5]");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias5, u, u), ATTNCL_ERR_SHAPE,
               "bias is [5]");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias, u, z), ATTNCL_ERR_SHAPE,
               "u is [3, 2, 6], z1 is [3, 2, 5]");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias, u5, u5), ATTNCL_ERR_SHAPE,
               "u has T = 5, weight has 4 positions");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias, u, u, batched), ATTNCL_ERR_SHAPE,
               "batch axis must be 1");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias, u, u, tall), ATTNCL_ERR_SHAPE,
               "mask is [2, 3, 1], u has T = 3");
    ck_refused("spatial_gate_fwd", &params, HOSTS(weight, bias, u, u, wide), ATTNCL_ERR_SHAPE,
               "mask is [3, 4, 1]");
}
