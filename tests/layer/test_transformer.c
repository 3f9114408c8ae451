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

static const double factors[3] = {1, 2.5, 40};

static attncl_rotary_desc longrope(void)
{
    attncl_rotary_desc desc = ATTNCL_ROTARY_DESC_INIT;
    desc.width = 5;
    desc.scaling = ATTNCL_ROTARY_LONGROPE;
    desc.factor = 8;
    desc.original_max_position = 16;
    desc.factors = factors;
    return desc;
}

// An odd width turns one channel more.  Angles are floats: three roundings of the frequency, one of the product.
LOOP_TEST(longrope_divides_each_frequency, 0, 2)
{
    enum { N = 40, PAIRS = 3 };
    struct host *y = host_new(ATTNCL_F32, DIMS(N, 2, PAIRS)), *want = host_like(y);
    const double scale = _i ? 1.25 : sqrt(1 + log(8.0) / log(16.0));
    attncl_rotary_desc desc = longrope();
    struct rig b;
    desc.attention_factor = _i ? scale : 0;
    for (int p = 0; p < N; ++p) {
        for (int i = 0; i < PAIRS; ++i) {
            const double angle = p / (pow(10000.0, 2 * i / 5.0) * factors[i]);
            want->data[(2 * p) * PAIRS + i] = scale * cos(angle);
            want->data[(2 * p + 1) * PAIRS + i] = scale * sin(angle);
        }
    }
    rig_open(&b);
    rig_out(&b, attncl_rotary_table(b.g, &desc, N), y);
    rig_run_once(&b);
    ck_near(y, want, 0, 4 * N * 6e-8 * scale);
}

LOOP_TEST(a_longrope_that_is_none_is_refused, 0, 3)
{
    static const double wrong[3] = {1, 2, -3};
    static const char *const words[] = {"factors is NULL", "factors[2] is -3, must be above 0",
                                        "original_max_position is 1, at least 2"};
    struct host *x = host_new(ATTNCL_F32, DIMS(1));
    attncl_rotary_desc desc = longrope();
    struct rig b;
    desc.factors = _i == 0 ? NULL : _i == 1 ? wrong : factors;
    desc.original_max_position = _i == 2 ? 1 : 16;
    rig_open(&b);
    rig_out(&b, attncl_rotary_table(b.g, &desc, 4), x);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, words[_i]);
}

TEST(unknown_pairs_are_refused)
{
    struct host *x = host_random(30, DIMS(2, 1, 4)), *table = host_random(31, DIMS(2, 2, 2));
    struct rig b;
    rig_open(&b);
    const attncl_value in = rig_in(&b, x), turns = rig_in(&b, table);
    rig_out(&b, attncl_rotary(b.g, in, turns, (attncl_rotary_pairs)2, ATTNCL_NONE_VALUE), x);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "pairs 2 is unknown");
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
    attncl_rotary_desc desc = ATTNCL_ROTARY_DESC_INIT;
    desc.width = INT64_MAX;
    rig_open(&b);
    rig_out(&b, attncl_rotary_table(b.g, &desc, 1), x);
    ck_rig_fails(&b, ATTNCL_ERR_SHAPE, "2^48");
}
