// SPDX-License-Identifier: MIT
// What the gradients of the spatial gate refuse; test_spatial_gate.c has the rest.
// Reference: tests/ref/spatial_gate.c, by the definition of test_spatial_gate.c.

#include "launch/command_list.h"
#include "support/launch_mock.h"
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

static size_t splits[16];
static int n_launched;

static attncl_status note(const struct kspec *spec, const struct grid *grid)
{
    ck_assert_int_lt(n_launched, 16);
    splits[n_launched++] = strcmp(spec->kernel, "gemm_gpu_tile") == 0 ? grid->groups[1] : 0;
    return ATTNCL_OK;
}

// T, and the launches: tiles of the weight's gradient in parts of their sums, the additions of those, the mask.
static const struct {
    int64_t length;
    int n_launched;
} causal_lengths[] = {{64, 3}, {256, 3}, {512, 5}};

TABLE_TEST(gpus_split_the_long_sums_of_a_weight, causal_lengths)
{
    static const struct launch_mock mock = {NULL, note};
    const struct spatial_gate_fwd_params causal = {.causal = 1};
    const struct device_caps caps = launch_mock_gpu(VENDOR_NVIDIA, 32, 132);
    const int64_t n = causal_lengths[_i].length, w[] = {n, n}, x[] = {n, 8, 1024};
    struct storage memory = {.bytes = 0};
    const struct span all[4] = {{&memory}, {&memory}, {&memory}, {NULL}};
    struct tensor_desc in[4] = {{0}}, out[1] = {{0}};
    struct op_call call = {
        .sig = {.caps = &caps, .params = &causal, .n_in = 4, .n_out = 1, .in = in, .out = out},
        .in = all,
        .out = all,
        .scratch = {&memory}};
    struct launcher l = {.caps = &caps};
    size_t scratch = 0;

    ck_ok(attncl__desc_make(ATTNCL_F32, 2, w, &in[0]));
    ck_ok(attncl__desc_make(ATTNCL_F32, 3, x, &in[1]));
    ck_ok(attncl__desc_make(ATTNCL_F32, 3, x, &in[2]));
    ck_ok(attncl__op_infer(&attncl__op_spatial_gate_bwd_weight, &call.sig));
    ck_ok(attncl__op_spatial_gate_bwd_weight.scratch(&call.sig, &scratch));
    ck_assert_uint_gt(scratch, 0);
    n_launched = 0;
    launch_mock_set(&mock);
    ck_ok(attncl__op_spatial_gate_bwd_weight.launch(&l, &call));
    launch_mock_set(NULL);
    ck_assert_int_eq(n_launched, causal_lengths[_i].n_launched);
    ck_assert_uint_gt(splits[0], 8);
}

FIXTURE_ONCE(device_up, device_down);
