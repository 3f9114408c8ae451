// SPDX-License-Identifier: MIT
// linear and bmm against their reference (tests/ref/gemm.c, gemm_bwd.c); gemm/test_gemm.c goes through the GEMM's own forms.

#include "attncl/kinds.h"
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
