// SPDX-License-Identifier: MIT
// The gradients of linear maps, epilogues included, and of batched GEMMs: against their
// definitions (tests/ref/gemm_bwd.c) and against finite differences.

#include <math.h>

#include "attncl/gradient.h"
#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/grad_test.h"
#include "support/layer_test.h"

static const double u = 6e-8;

// n products of numbers N(0, 1) and their sum: below u n in units of sqrt(n), the sum's own size.
static double rounding(int64_t n)
{
    return u * (4 + (double)n) * (1 + sqrt((double)n)) / 4;
}

static const struct shape {
    int rows, in, out;
} shapes[] = {{1, 1, 1}, {37, 19, 33}, {130, 64, 48}};

TABLE_TEST(linear_matches_the_reference, shapes)
{
    const struct shape s = shapes[_i];
    struct host *d = host_random(1, DIMS(s.rows, s.out)), *x = host_random(2, DIMS(s.rows, s.in));
    struct host *w = host_random(3, DIMS(s.out, s.in));
    struct host *dx = host_like(x), *dw = host_like(w), *db = host_new(ATTNCL_F32, DIMS(s.out));
    struct host *want_dx = host_like(x), *want_dw = host_like(w), *want_db = host_like(db);

    ref_linear_bwd_input(d, w, want_dx);
    ref_linear_bwd_weight(d, x, want_dw);
    ref_linear_bwd_bias(d, want_db);
    ck_ok(run_op("linear_bwd_input", NULL, HOSTS(d, w), HOSTS(dx)));
    ck_ok(run_op("linear_bwd_weight", NULL, HOSTS(d, host_view(x)), HOSTS(dw)));
    ck_ok(run_op("linear_bwd_bias", NULL, HOSTS(d), HOSTS(db)));
    ck_near(dx, want_dx, 1e-6, rounding(s.out));
    ck_near(dw, want_dw, 1e-6, rounding(s.rows));
    ck_near(db, want_db, 1e-6, rounding(s.rows));
}

TABLE_TEST(products_are_added_to_what_is_there, shapes)
{
    const struct shape s = shapes[_i];
    struct host *d = host_random(1, DIMS(s.rows, s.out)), *x = host_random(2, DIMS(s.rows, s.in));
    struct host *w = host_random(3, DIMS(s.out, s.in));
    struct host *x_sum = host_random(4, DIMS(s.rows, s.in)),
                *w_sum = host_random(5, DIMS(s.out, s.in));
    struct host *want_dx = host_like(x), *want_dw = host_like(w);

    ref_linear_bwd_input(d, w, want_dx);
    ref_linear_bwd_weight(d, x, want_dw);
    for (int64_t i = 0; i < want_dx->count; ++i)
        want_dx->data[i] += x_sum->data[i];
    for (int64_t i = 0; i < want_dw->count; ++i)
        want_dw->data[i] += w_sum->data[i];
    ck_op("linear_bwd_input", NULL, HOSTS(d, w, x_sum), HOSTS(want_dx), 1e-6, rounding(s.out));
    ck_op("linear_bwd_weight", NULL, HOSTS(d, x, w_sum), HOSTS(want_dw), 1e-6, rounding(s.rows));
}

// Through frozen weights of 16 bits, few rows and many.
TABLE_TEST(linear_input_of_weights_of_16_bits, shapes)
{
    const struct shape s = shapes[_i];
    struct host *d = host_random(1, DIMS(s.rows, s.out));
    struct host *want = host_new(ATTNCL_F32, DIMS(s.rows, s.in));
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};

    for (int i = 0; i < 2; ++i) {
        struct host *w = host_stored(host_random(3, DIMS(s.out, s.in)), types[i]);
        ref_linear_bwd_input(d, w, want);
        ck_op("linear_bwd_input", NULL, HOSTS(d, w), HOSTS(want), 1e-6, rounding(s.out));
    }
}

// More rows than a block, more columns than a chunk, ragged both.
TEST(bias_in_two_passes)
{
    struct host *d = host_random(4, DIMS(3, 257, 331));
    struct host *db = host_new(ATTNCL_F32, DIMS(331)), *want = host_like(db);

    ref_linear_bwd_bias(d, want);
    ck_op("linear_bwd_bias", NULL, HOSTS(d), HOSTS(want), 1e-6, rounding(3 * 257));
}

static void linear(const void *params, struct host *const *in, struct host *const *out)
{
    const struct linear_fwd_params *p = params;
    struct host *const all[] = {in[0], in[1], in[2], in[3], in[4]};
    ref_linear_fwd(all, p->activation, out[0]);
}

static void bmm(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_bmm_fwd(in[0], in[1], out[0]);
}

TEST(epilogues_meet_finite_differences)
{
    struct host *x = host_random(5, DIMS(2, 3, 5)), *w = host_random(6, DIMS(7, 5));
    struct host *b = host_random(7, DIMS(7)), *gate = host_random(8, DIMS(2, 3, 7));
    struct host *r = host_random(9, DIMS(2, 3, 7));
    const struct linear_fwd_params none = {ATTNCL_IDENTITY}, gelu = {ATTNCL_GELU},
                                   tanh_of = {ATTNCL_TANH}, relu = {ATTNCL_RELU};

    ck_gradients("linear_fwd", &none, HOSTS(x, w, b, NULL, r), 027, linear, 1e-5);
    ck_gradients("linear_fwd", &gelu, HOSTS(x, w, b, NULL, NULL), 7, linear, 1e-5);
    ck_gradients("linear_fwd", &tanh_of, HOSTS(x, w, b, gate, r), 037, linear, 1e-5);
    ck_gradients("linear_fwd", &relu, HOSTS(x, w, b, NULL, NULL), 7, linear, 1e-5);
    ck_gradients("linear_fwd", &relu, HOSTS(x, w, b, NULL, r), 027, linear, 1e-5);
    ck_gradients("linear_fwd", &relu, HOSTS(x, w, b, gate, NULL), 017, linear, 1e-5);
}

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

TEST(bmm_meets_finite_differences)
{
    struct host *a = host_random(10, DIMS(2, 3, 5)), *b = host_random(11, DIMS(2, 5, 7));

    ck_gradients("bmm_fwd", NULL, HOSTS(a, b), 3, bmm, 1e-5);
}

TEST(refusals)
{
    struct host *d = host_new(ATTNCL_F32, DIMS(2, 3)), *w = host_new(ATTNCL_F32, DIMS(4, 5));

    ck_refused("linear_bwd_input", NULL, HOSTS(d, w), ATTNCL_ERR_SHAPE, "[4, 5]");
    ck_refused("linear_bwd_weight", NULL, HOSTS(d, w), ATTNCL_ERR_SHAPE, "rows");
    ck_refused("linear_bwd_weight", NULL, HOSTS(d, d, d), ATTNCL_ERR_SHAPE,
               "addend is [2, 3], the product [3, 3]");
}
