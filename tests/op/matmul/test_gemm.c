// SPDX-License-Identifier: MIT
// linear and bmm against their reference (tests/ref/gemm.c, gemm_bwd.c); gemm/test_gemm.c goes through the GEMM's own forms.

#include <math.h>
#include <string.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

TEST(weights_of_16_bits_are_read_exactly)
{
    // The least subnormal, the least normal and the largest of each type, and a number that neither rounds.
    const double f16[] = {0x1p-24, 0x1p-14, 65504, 1.5},
                 bf16[] = {0x1p-120, 0x1p-126, 0x1.fep127, 1.5};

    // One on each row, alone or on the diagonal.
    for (int i = 0; i < 2; ++i)
        for (int width = 1; width <= 4; width += 3) {
            const double ones[] = {1, 1, 1, 1}, *numbers = i ? bf16 : f16;
            double elements[16] = {0};
            for (int k = 0; k < 4; ++k)
                elements[k * width + k % width] = numbers[k];
            struct host *weight = host_stored(host_with(ATTNCL_F32, elements, DIMS(4, width)),
                                              i ? ATTNCL_BF16 : ATTNCL_F16);
            struct host *x = host_with(ATTNCL_F32, ones, DIMS(1, width));
            struct host *got = host_new(ATTNCL_F32, DIMS(1, 4));
            struct linear_fwd_params params = {0};
            ck_ok(run_op("linear_fwd", &params, HOSTS(x, weight), HOSTS(got)));
            for (int k = 0; k < 4; ++k)
                ck_assert_msg(got->data[k] == numbers[k], "%a instead of %a", got->data[k],
                              numbers[k]);
        }
}

// [rows, 160] times weights [35, 160] in 8 or 4 bits.
static struct host *quantised_product(struct host *x, attncl_dtype dtype)
{
    struct host *weight = host_stored(host_random(2, DIMS(35, 160)), dtype);
    struct host *y = host_new(ATTNCL_F32, DIMS(x->dim[0], 35));
    struct linear_fwd_params params = {0};

    ck_ok(run_op("linear_fwd", &params, HOSTS(x, weight), HOSTS(y)));
    return y;
}

static const attncl_dtype quantised[] = {ATTNCL_Q8, ATTNCL_Q4};

// So a prompt gives the same bits as its tokens one by one, and a slot what it gives alone; whatever instructions the CPU has.
TABLE_TEST(rows_do_not_depend_on_how_many_there_are, quantised)
{
    struct device_caps *caps = &test_context()->caps;
    struct host *x = host_random(1, DIMS(21, 160));
    const struct host *all = quantised_product(x, quantised[_i]);
    const int vnni = caps->vnni;

    if (caps->variant != VARIANT_CPU)
        return;
    for (int with_vnni = 0; with_vnni <= vnni; ++with_vnni)
        for (int64_t rows = 1; rows <= 9; rows += rows < 4 ? 1 : 5) {
            struct host *few = host_new(ATTNCL_F32, DIMS(rows, 160));
            memcpy(few->data, x->data, (size_t)few->count * sizeof *few->data);
            caps->vnni = with_vnni;
            const struct host *y = quantised_product(few, quantised[_i]);
            for (int64_t i = 0; i < y->count; ++i)
                ck_assert_msg(y->data[i] == all->data[i], "%a in %d rows, %a in 21", y->data[i],
                              (int)rows, all->data[i]);
        }
}

// Every magnitude that a float has, and what is none: a row with NaN or infinity has no number left, the others do not notice.
TABLE_TEST(activations_of_any_size, quantised)
{
    static const double sizes[] = {1e35, 1e20, 1e-20, 1e-30, 0};
    struct host *x = host_random(1, DIMS(8, 160)), *bad = host_copy(x);

    for (size_t i = 0; i < COUNT_OF(sizes); ++i) {
        struct host *scaled = host_copy(x);
        host_scale(scaled, sizes[i]);
        const struct host *want = quantised_product(x, quantised[_i]),
                          *y = quantised_product(scaled, quantised[_i]);
        for (int64_t j = 0; j < y->count; ++j)
            ck_assert_msg(fabs(y->data[j] - sizes[i] * want->data[j]) <= sizes[i] * 1e-3,
                          "%g instead of %g", y->data[j], sizes[i] * want->data[j]);
    }
    bad->data[2 * 160 + 77] = NAN;
    bad->data[5 * 160 + 3] = INFINITY;
    const struct host *want = quantised_product(x, quantised[_i]),
                      *y = quantised_product(bad, quantised[_i]);
    for (int64_t j = 0; j < y->count; ++j)
        if (j / 35 == 2 || j / 35 == 5)
            ck_assert_msg(!isfinite(y->data[j]), "%g is a number", y->data[j]);
        else
            ck_assert(y->data[j] == want->data[j]);
}
