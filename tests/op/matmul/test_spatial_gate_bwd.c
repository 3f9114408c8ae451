// SPDX-License-Identifier: MIT
// What the gradients of the spatial gate refuse; test_spatial_gate.c has the rest.
// Reference: tests/ref/spatial_gate.c, by the definition of test_spatial_gate.c.

#include "support/op_test.h"

TEST(refusals)
{
    const struct spatial_gate_fwd_params plain = {0};
    struct host *w = host_new(ATTNCL_F32, DIMS(3, 3)), *x = host_new(ATTNCL_F32, DIMS(5, 2, 7));

    ck_refused("spatial_gate_bwd_input", &plain, HOSTS(w, x), ATTNCL_ERR_SHAPE,
               "ds has T = 5, weight has N = 3");
    ck_refused("spatial_gate_bwd_gate", NULL, HOSTS(x, x, x), ATTNCL_ERR_SHAPE,
               "must be [T, B, C] with T = 2 as s [5, 2, 7]");
}
