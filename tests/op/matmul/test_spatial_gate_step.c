// SPDX-License-Identifier: MIT
// A step of the spatial gate against its reference (tests/ref/spatial_gate_step.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// Each sum of t + 2 terms: t + 2 roundings at most, of its terms' sizes; entries are below 5 in
// size, some 3 on the history's side, and the product with z1 rounds once more.
static double atol_for(int64_t n)
{
    return (double)(n + 3) * 6e-8 * 5 * (3 * 5 * sqrt((double)n) + 5);
}

static void check_of(attncl_dtype dtype, int64_t n, int64_t batch, int64_t width, bool as_view,
                     double position)
{
    struct host *weight = host_random(1, DIMS(n, n)), *bias = host_random(2, DIMS(n));
    struct host *u = host_random(3, DIMS(batch, width)), *z1 = host_random(4, DIMS(batch, width));
    struct host *history = host_random(5, DIMS(n, batch, width));
    struct host *want = host_like(u);
    const int64_t t = position < 0 ? 0 : position >= (double)n ? n - 1 : (int64_t)position;

    if (dtype != ATTNCL_F32)
        host_stored(history, dtype);
    for (int64_t i = (t + 1) * batch * width; i < history->count; ++i)
        history->data[i] = NAN; // what is to come is not looked at
    struct host *after = host_copy(history);
    ref_spatial_gate_step_fwd(weight, bias, u, z1, t, after, want);
    z1->as_view = as_view;
    ck_op("spatial_gate_step_fwd", NULL, HOSTS(weight, bias, u, z1, host_index(position), history),
          HOSTS(want), 6e-8, atol_for(n));
    for (int64_t i = 0; i < history->count; ++i)
        ck_assert(history->data[i] == after->data[i] ||
                  (isnan(history->data[i]) && isnan(after->data[i])));
}

static void check(int64_t n, int64_t batch, int64_t width, bool as_view, double position)
{
    check_of(ATTNCL_F32, n, batch, width, as_view, position);
}

TEST(matches_the_reference)
{
    for (int t = 0; t < 9; ++t)
        check(9, 2, 21, t % 2, t);
    check(1, 1, 1, false, 0);
    check(5, 3, 130, true, 4);
    check(67, 1, 64, false, 66);
}

// Parts that are full, cut short, and not there yet.
TEST(parts_of_the_positions_add_up)
{
    static const int positions[] = {0, 31, 32, 33, 64, 65, 300, 511, 599};
    for (size_t i = 0; i < COUNT_OF(positions); i += on_simulator() ? 3 : 1)
        check(600, 1, 70, i % 2, positions[i]);
}

// The history has another value than u: the nearest of its type, which the gate sees.
TEST(histories_of_16_bits)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    for (size_t i = 0; i < COUNT_OF(dtypes); ++i) {
        check_of(dtypes[i], 1, 1, 1, false, 0);
        for (int t = 0; t < 9; t += 4)
            check_of(dtypes[i], 9, 2, 21, t == 4, t);
        check_of(dtypes[i], 67, 1, 64, false, 66);
        check_of(dtypes[i], 300, 1, 70, true, 299);
    }
}

TEST(a_position_outside_counts_as_the_nearest)
{
    check(4, 2, 5, false, 4);
    check(4, 2, 5, false, 2147483647);
    check(4, 2, 5, false, -1);
}

TEST(refusals)
{
    struct host *weight = host_new(ATTNCL_F32, DIMS(4, 4)),
                *oblong = host_new(ATTNCL_F32, DIMS(4, 5));
    struct host *bias = host_new(ATTNCL_F32, DIMS(4)), *bias5 = host_new(ATTNCL_F32, DIMS(5));
    struct host *u = host_new(ATTNCL_F32, DIMS(2, 3)), *z4 = host_new(ATTNCL_F32, DIMS(2, 4));
    struct host *history = host_new(ATTNCL_F32, DIMS(4, 2, 3));
    struct host *other = host_new(ATTNCL_F32, DIMS(4, 2, 4));

    ck_refused("spatial_gate_step_fwd", NULL, HOSTS(oblong, bias, u, u, host_index(0), history),
               ATTNCL_ERR_SHAPE, "weight is [4, 5]");
    ck_refused("spatial_gate_step_fwd", NULL, HOSTS(weight, bias5, u, u, host_index(0), history),
               ATTNCL_ERR_SHAPE, "bias is [5]");
    ck_refused("spatial_gate_step_fwd", NULL, HOSTS(weight, bias, u, z4, host_index(0), history),
               ATTNCL_ERR_SHAPE, "u is [2, 3], z1 is [2, 4]");
    ck_refused("spatial_gate_step_fwd", NULL, HOSTS(weight, bias, u, u, host_index(0), other),
               ATTNCL_ERR_SHAPE, "history is [4, 2, 4]");
    ck_refused("spatial_gate_step_fwd", NULL, HOSTS(weight, bias, u, u, u, history),
               ATTNCL_ERR_DTYPE, "position is F32");
}
