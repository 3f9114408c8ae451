// SPDX-License-Identifier: MIT

#include "support/merging_test.h"

#include <stdlib.h>

#include "device/context.h"
#include "op/fused/merging_linear.h"
#include "support/test.h"

bool device_merges(int64_t batch, int64_t out, int64_t n_heads, int64_t width, int64_t limit,
                   attncl_dtype weight)
{
    const struct device_caps *caps = &test_context()->caps;
    const char *group = getenv("TEST_KERNEL_GROUP");
    const struct gemm g =
        GEMM_OF(1, batch, out, n_heads * width, .b_dtype = weight, .trans_b = true,
                .merge = {.n_heads = n_heads,
                          .n_parts = attncl__step_parts(caps, batch * n_heads, limit),
                          .limit = limit});
    return attncl__gemm_merges(caps, &g) && !(group && atoi(group) == 1);
}
