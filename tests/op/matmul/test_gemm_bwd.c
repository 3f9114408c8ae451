// SPDX-License-Identifier: MIT
// The gradients of linear maps as ops by themselves, which add to what is there: against their definitions
// (tests/ref/gemm_bwd.c).  Those of linear_fwd and bmm_fwd are in test_gemm.c.

#include <math.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/layer_test.h"
#include "support/op_spec.h"

static void add(const struct host *addend, struct host *y)
{
    for (int64_t i = 0; addend && i < y->count; ++i)
        y->data[i] += addend->data[i];
}

static void of_input(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_input(in[0], in[1], out[0]);
    add(in[2], out[0]);
}

static void of_weight(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_weight(in[0], in[1], out[0]);
    add(in[2], out[0]);
}

static void of_bias(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_bias(in[0], out[0]);
}

static struct host *sizes_of(const struct host *h)
{
    struct host *sizes = h ? host_like(h) : NULL;

    for (int64_t i = 0; h && i < h->count; ++i)
        sizes->data[i] = fabs(h->data[i]);
    return sizes;
}

// n products, their sums and the addend: n + 2 roundings at most, of the size without cancelling signs.
static void allow(const struct spec_point *p, ref_forward forward, double n, struct host *allowed)
{
    struct host *in[3] = {NULL};

    for (int i = 0; i < 3 && spec_in(p, i); ++i)
        in[i] = sizes_of(spec_in(p, i));
    forward(NULL, in, &allowed);
    host_scale(allowed, (n + 2) * 0x1p-24);
    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] += 1e-37;
}

static void allow_input(const struct spec_point *p, int k, const struct host *want,
                        struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_input, spec_extent(p, 'N'), allowed);
}

static void allow_weight(const struct spec_point *p, int k, const struct host *want,
                         struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_weight, spec_extent(p, 'R'), allowed);
}

static void allow_bias(const struct spec_point *p, int k, const struct host *want,
                       struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_bias, spec_extent(p, 'R'), allowed);
}

#define BWD_SIZES "R=1 K=1 N=1; R=37 K=19 N=33; R=130 K=64 N=48"

OP_SPEC(linear_bwd_input, .in = "d f32 R* N; weight f32+ N K; addend? f32 R* K",
        .out = "dx f32 R* K", .ref = of_input, .allow = allow_input,
        .smoke = "R=2 K=33 N=7; R=35 K=33 N=65", .special = "R=5 K=21 N=19", .full = BWD_SIZES,
        .data = SCALED,
        .cases = {{"alone"},
                  {"added", .with = "addend f32 R* K"},
                  {"F16", .with = "weight f16 N K"},
                  {"BF16", .with = "weight bf16 N K"}});

OP_SPEC(linear_bwd_weight, .in = "d f32 R* N; x f32 R* K; addend? f32 N K", .out = "dw f32 N K",
        .ref = of_weight, .allow = allow_weight, .smoke = "R=2 K=33 N=7; R=5x7 K=33 N=65",
        .special = "R=5 K=21 N=19", .full = BWD_SIZES, .data = SCALED,
        .cases = {{"alone"}, {"added", .with = "addend f32 N K"}});

// More rows than a block, more columns than a chunk, ragged both: two passes.
OP_SPEC(linear_bwd_bias, .in = "d f32 R* N", .out = "db f32 N", .ref = of_bias, .allow = allow_bias,
        .smoke = "R=2 N=7; R=3x257 N=331", .special = "R=5 N=19; R=300 N=33", .data = SCALED);

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
