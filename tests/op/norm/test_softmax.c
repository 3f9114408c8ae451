// SPDX-License-Identifier: MIT
// softmax against its reference (tests/ref/softmax.c).

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

// As on a device that ends the loops of a work-item after so many iterations.
TEST(rows_too_long_for_one_work_item)
{
    struct device_caps *caps = &test_context()->caps;
    const struct device_caps saved = *caps;
    struct host *x = host_random(2, DIMS(3, 30011)), *want = host_like(x);

    if (on_simulator() || saved.max_group < 64 || saved.max_loop_iterations)
        return;
    caps->max_loop_iterations = 3000;
    ref_softmax_fwd(x, want);
    ck_op("softmax_fwd", NULL, HOSTS(x), HOSTS(want), 9e-6, 2e-38);
    caps->max_loop_iterations = 20;
    ck_fails(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(host_like(x))), ATTNCL_ERR_UNSUPPORTED,
             "loop iterations, the device stops at 20");
    *caps = saved;
}
