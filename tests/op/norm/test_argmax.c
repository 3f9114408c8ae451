// SPDX-License-Identifier: MIT
// The place of the largest element against the reference (tests/ref/argmax.c).

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

static void check(struct host *x)
{
    struct host *want = host_new(ATTNCL_I32, x->rank - 1, x->dim);

    ref_argmax_fwd(x, want);
    ck_op("argmax_fwd", NULL, HOSTS(x), HOSTS(want), 0, 0);
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
        x->data[76 + c] = c < 3 ? NAN : -INFINITY;
        x->data[57 + c] = c == 18 ? INFINITY : 3e38;
    }
    check(x);
}
