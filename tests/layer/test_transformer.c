// SPDX-License-Identifier: MIT
// Tables of positions; option structs.

#include <math.h>

#include "attncl/transformer.h"
#include "support/layer_test.h"

LOOP_TEST(sinusoids_are_sines_and_cosines, 0, 4)
{
    static const int64_t widths[] = {1, 2, 7, 16};
    const int64_t width = widths[_i], n = 300;
    const int64_t dim[2] = {n, width};
    struct host *y = host_new(ATTNCL_F32, 2, dim), *want = host_like(y);
    struct rig b;
    for (int64_t p = 0; p < n; ++p) {
        for (int64_t c = 0; c < width; ++c) {
            const double angle = (double)p / pow(10000.0, (double)(c - c % 2) / (double)width);
            want->data[p * width + c] = c % 2 ? cos(angle) : sin(angle);
        }
    }
    rig_open(&b);
    rig_out(&b, attncl_sinusoid(b.g, n, width), y);
    rig_run_once(&b);
    ck_near(y, want, 0, 6e-8); // one rounding to float
}

TEST(an_unset_option_struct_is_refused)
{
    const attncl_linear_desc desc = {.struct_size = 4};
    struct host *x = host_random(20, DIMS(2, 3)), *w = host_random(21, DIMS(4, 3));
    struct rig b;
    rig_open(&b);
    const attncl_value in = rig_in(&b, x), weight = rig_in(&b, w);
    rig_out(&b, attncl_linear_fused(b.g, &desc, in, weight, ATTNCL_NONE_VALUE), x);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "attncl_linear_desc has struct_size 4");
}

TEST(a_table_too_large_is_refused)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(1));
    struct rig b;
    rig_open(&b);
    rig_out(&b, attncl_sinusoid(b.g, INT64_C(1) << 40, INT64_C(1) << 40), x);
    ck_rig_fails(&b, ATTNCL_ERR_SHAPE, "2^48");
}
