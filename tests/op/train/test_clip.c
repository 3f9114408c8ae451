// SPDX-License-Identifier: MIT
// Clipping by norm and by value against its reference (tests/ref/clip.c).

#include "ref/ref.h"
#include "support/op_test.h"
#include <math.h>

// The ops together, of arrays one after another whose squares no float may hold.
LOOP_TEST(no_size_is_too_much, 0, 6)
{
    static const double sizes[] = {1, 1e30, 1e19, 1e-12, 1e-25, 0};
    static const struct clip_factor_fwd_params params = {1, 0};
    struct host *x[] = {host_random(1, DIMS(130)), host_random(2, DIMS(7, 5))};
    struct host *sums = host_new(ATTNCL_F32, DIMS(3)), *all = host_like(sums);
    struct host *total = host_new(ATTNCL_F32, 0, NULL), *by = host_like(total);
    struct host *want = host_like(total);

    host_scale(x[0], sizes[_i]);
    host_scale(x[1], sizes[_i]);
    ck_ok(run_op("sum_squares_fwd", NULL, HOSTS(NULL, x[0]), HOSTS(sums)));
    ck_ok(run_op("sum_squares_fwd", NULL, HOSTS(sums, x[1]), HOSTS(all)));
    ck_ok(run_op("clip_factor_fwd", &params, HOSTS(all), HOSTS(total, by)));
    want->data[0] = ref_norm(x, 2);
    ck_near(total, want, 300 * 6e-8 / 2, 0);
    want->data[0] = ref_clip_factor(want->data[0], 1, 0);
    ck_near(by, want, 300 * 6e-8 / 2, 0);
}
