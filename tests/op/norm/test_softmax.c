// SPDX-License-Identifier: MIT
// softmax against its reference (tests/ref/softmax.c).

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static void softmax(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_softmax_fwd(in[0], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    struct host *y = host_like(in[0]);

    softmax(params, in, &y);
    ref_softmax_bwd(y, dy[0], dx[0]);
}

// A relative error of exp(x - m): the subtraction's rounding (spans), exp and the division, and the sum of the row.
// Smoke: one column, less than a vector, exactly one, a ragged tail, several rows to a work-item or to a work-group, of
// which the last has fewer.  Full: both sides of the widths at which a GPU's rows take more work-items, and cease to be
// held; there each piece of a row may change the maximum, or hold nothing.
OP_SPEC(softmax_fwd, .in = "x f32 R* C", .out = "y f32 R* C", .ref = softmax, .grad = "x",
        .ref_bwd = gradient, .grad_data = SPAN90, .rel = 10, .spans = true, .chain = 'C',
        .tiny = 2e-38, .smoke = "R=1,5 C=1,7,64; R=3x5 C=21; R=- C=33; R=37 C=19; R=3 C=257",
        .special = "R=3 C=21; R=3 C=8196",
        .full = "R=70 C=16,256; R=9 C=31,32,33; R=5 C=1024,1025; R=3 C=4099,8192,8196,8197",
        .data = SPAN90 | FAR | PEAK | LIMITS | ALIKE | RISING | MINUS_INF | NAN_ROWS);

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
