// SPDX-License-Identifier: MIT
// Mixing, keeping and gating a step's memory (tests/ref/feedback_memory.c; the rest is defined here).

#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

// Slots, B, H, limit, D = 4, 2, 3, 5, 6; places 0 .. 3 were read by later steps.
TEST(load_gives_what_a_step_stored)
{
    const struct feedback_load_fwd_params params = {1, 2, 5}, far = {3, 2, 5};
    struct host *cache = host_random(1, DIMS(4, 2, 3, 5, 6)),
                *want = host_new(ATTNCL_F32, DIMS(2, 36));

    for (int t = -1; t < 6; ++t) {
        for (int64_t i = 0; i < want->count; ++i)
            want->data[i] =
                t < 0 || t > 3 ? 0 : cache->data[ref_feedback_place(want, cache, 1, t, i)];
        ck_op("feedback_load_fwd", &params, HOSTS(cache, host_index(t)), HOSTS(want), 0, 0);
    }
    ck_refused("feedback_load_fwd", &far, HOSTS(cache, host_index(0)), ATTNCL_ERR_SHAPE,
               "2 slots from slot 3 on");
}
