// SPDX-License-Identifier: MIT
// The gradients of linear maps as ops by themselves, which add to what is there: against their definitions
// (tests/ref/gemm_bwd.c).  Those of linear_fwd and bmm_fwd are in test_gemm.c.

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/layer_test.h"
#include "support/op_test.h"
#include <math.h>

// All values between nodes, for the gradients of w and v in v f(w x).
static size_t gradient_bytes(attncl_activation activation)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    attncl_value dy, y, grads[2];
    struct rig rig;

    rig_open(&rig);
    const attncl_value x = rig_in(&rig, host_new(ATTNCL_F32, DIMS(64, 16)));
    const attncl_value w = rig_in(&rig, host_new(ATTNCL_F32, DIMS(256, 16)));
    const attncl_value v = rig_in(&rig, host_new(ATTNCL_F32, DIMS(8, 256)));
    desc.activation = activation;
    dy = rig_in(&rig, host_new(ATTNCL_F32, DIMS(64, 8)));
    y = attncl_linear(rig.g, attncl_linear_fused(rig.g, &desc, x, w, ATTNCL_NONE_VALUE), v,
                      ATTNCL_NONE_VALUE);
    attncl_graph_gradient(rig.g, 1, &y, &dy, 2, (attncl_value[]){w, v}, grads);
    rig_out(&rig, grads[0], host_new(ATTNCL_F32, DIMS(256, 16)));
    rig_out(&rig, grads[1], host_new(ATTNCL_F32, DIMS(8, 256)));
    ck_ok(rig_compile(&rig));
    ck_ok(attncl_graph_memory(rig.g, &report));
    rig_close(&rig);
    return report.activations_bytes;
}

TEST(relu_keeps_its_result_alone)
{
    ck_assert_uint_eq(gradient_bytes(ATTNCL_GELU) - gradient_bytes(ATTNCL_RELU),
                      sizeof(float) * 64 * 256);
}
