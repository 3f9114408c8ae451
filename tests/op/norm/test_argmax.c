// SPDX-License-Identifier: MIT
// The place of the largest element against the reference (tests/ref/argmax.c).

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

static void check(struct host *x)
{
    struct host *want = host_new(ATTNCL_I32, x->rank - 1, x->dim);

    ref_argmax_fwd(x, want);
    ck_op("argmax_fwd", NULL, HOSTS(x), HOSTS(want), 0, 0);
}

TEST(matches_the_reference)
{
    static const int widths[] = {1, 3, 16, 19, 256, 300, 4099};
    for (size_t i = 0; i < COUNT_OF(widths); ++i)
        check(host_random((unsigned)i, DIMS(7, widths[i])));
    check(host_view(host_random(9, DIMS(3, 2, 21))));
    check(host_random(10, DIMS(50)));
}

TEST(the_first_among_equals)
{
    check(host_with(ATTNCL_F32, host_ints(1, 0, 3, DIMS(40, 37))->data, DIMS(40, 37)));
}

// As on a device that ends the loops of a work-item after so many iterations.
TEST(rows_too_long_for_one_work_item)
{
    struct device_caps *caps = &test_context()->caps;
    const struct device_caps saved = *caps;

    if (on_simulator() || saved.max_group < 64 || saved.max_loop_iterations)
        return;
    caps->max_loop_iterations = 3000;
    check(host_random(3, DIMS(5, 30011)));
    *caps = saved;
}

TEST(what_is_no_number)
{
    struct host *x = host_random(2, DIMS(5, 19));

    for (int c = 0; c < 19; ++c) {
        x->data[c] = NAN;
        x->data[19 + c] = c == 7 ? -1e4 : NAN;
        x->data[38 + c] = -INFINITY;
        x->data[57 + c] = c == 18 ? INFINITY : 3e38;
    }
    check(x);
}

TEST(empty_is_fine)
{
    check(host_new(ATTNCL_F32, DIMS(0, 5)));
}

TEST(refusals)
{
    struct host *none = host_new(ATTNCL_F32, DIMS(2, 0));
    struct host *ints = host_new(ATTNCL_I32, DIMS(2, 3));

    ck_refused("argmax_fwd", NULL, HOSTS(none), ATTNCL_ERR_SHAPE, "has 0");
    ck_refused("argmax_fwd", NULL, HOSTS(ints), ATTNCL_ERR_DTYPE, "I32");
}
