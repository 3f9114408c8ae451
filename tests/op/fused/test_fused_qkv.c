// SPDX-License-Identifier: MIT
// Three linear maps at once, with a layer norm in front and without, against the reference.
// Reference: tests/ref/layer_norm.c and tests/ref/gemm.c.

#include <math.h>

#include "device/context.h"
#include "gemm/gemm.h"
#include "ref/ref.h"
#include "support/op_test.h"

struct qkv_case {
    int64_t rows, in, out;
    bool norm, biased[3];
    attncl_dtype dtype; // of the weights
    bool views;
};

// What the norm's own roundings add to element (i, j): as in test_fused_norm_linear.c.
static double norm_error(const struct host *weight, const struct host *z, double size, int64_t i,
                         int64_t j)
{
    const int64_t in = weight->dim[1];
    const double u = 6e-8, n = (double)in;
    double sum = 0;

    for (int64_t c = 0; c < in; ++c)
        sum += fabs(weight->data[j * in + c]) *
               ((8 + n / 256) * u * fabs(z->data[i * in + c]) + u * (4 * log2(n + 1) + 2) * size);
    return sum;
}

static struct host *weights(const struct qkv_case *c, unsigned seed)
{
    struct host *w = host_random(seed, DIMS(c->out, c->in));

    if (c->dtype != ATTNCL_F32)
        return host_stored(w, c->dtype);
    return c->views ? host_view(w) : w;
}

static void compare(const struct qkv_case *c, const struct host *z, const struct host *weight,
                    const struct host *bias, double size, const struct host *got)
{
    const struct gemm g = ref_linear(c->rows, c->out, c->in, bias != NULL, 0);
    struct host *want = host_like(got), *bound = host_like(got);

    ref_gemm(&g,
             &(struct ref_operands){z->data, weight->data, bias ? bias->data : NULL, NULL, NULL},
             want->data, bound->data);
    for (int64_t i = 0; c->norm && i < got->count; ++i)
        bound->data[i] += norm_error(weight, z, size, i / c->out, i % c->out);
    ck_terms(got, want, bound, 1, 0, "y");
}

static void check(const struct qkv_case *c)
{
    const struct fused_qkv_fwd_params params = {{1e-5f}};
    struct host *x = host_random(1, DIMS(c->rows, c->in)), *z = x;
    struct host *norm_weight = c->norm ? host_random(2, DIMS(c->in)) : NULL;
    struct host *norm_bias = c->norm ? host_random(3, DIMS(c->in)) : NULL;
    struct host *w[3], *b[3], *y[3];

    if (c->views)
        host_view(x);
    for (int i = 0; i < 3; ++i) {
        w[i] = weights(c, 10 + (unsigned)i);
        b[i] = c->biased[i] ? host_random(20 + (unsigned)i, DIMS(c->out)) : NULL;
        y[i] = host_new(ATTNCL_F32, DIMS(c->rows, c->out));
    }
    const attncl_status status =
        run_op("fused_qkv_fwd", &params,
               HOSTS(x, w[0], w[1], w[2], b[0], b[1], b[2], norm_weight, norm_bias),
               HOSTS(y[0], y[1], y[2]));
    const struct gemm g = ref_linear(c->rows, c->out, c->in, false, 0);
    if (!attncl__gemm_takes_others(&test_context()->caps, &g)) {
        const struct device_caps *caps = &test_context()->caps;
        ck_assert(caps->variant == VARIANT_CPU || c->rows >= 32 || caps->max_loop_iterations);
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch");
        return;
    }
    ck_ok(status);
    double size = 0;
    if (c->norm) {
        z = host_like(x);
        ref_layer_norm_fwd(x, norm_weight, norm_bias, (double)params.norm.eps, z);
        size = fmax(host_largest(norm_weight), host_largest(norm_bias));
    }
    for (int i = 0; i < 3; ++i)
        compare(c, z, w[i], b[i], size, y[i]);
}

static const struct qkv_case cases[] = {
    {.rows = 1, .in = 32, .out = 32, .norm = true, .biased = {true, true, true}},
    {.rows = 1, .in = 7, .out = 5, .biased = {false, true, false}},
    {.rows = 3, .in = 67, .out = 21, .norm = true, .biased = {true, false, true}},
    {.rows = 4, .in = 515, .out = 6, .norm = true},
    {.rows = 2, .in = 33, .out = 9, .norm = true, .biased = {false, false, true}, .views = true},
    {.rows = 2, .in = 37, .out = 10, .norm = true, .dtype = ATTNCL_F16},
    {.rows = 5, .in = 67, .out = 21, .norm = true, .biased = {true, false, true}},
    {.rows = 8, .in = 515, .out = 16, .norm = true},
    {.rows = 17, .in = 33, .out = 9, .biased = {false, false, true}, .views = true},
    {.rows = 32, .in = 37, .out = 10, .norm = true, .dtype = ATTNCL_BF16},
    {.rows = 33, .in = 8, .out = 8},     // refused
    {.rows = 32, .in = 512, .out = 704}, // likewise: a launch more takes less time
};

TABLE_TEST(matches_the_reference, cases)
{
    struct qkv_case c = cases[_i];

    c.dtype = c.dtype ? c.dtype : ATTNCL_F32;
    check(&c);
}

TEST(refusals)
{
    const struct fused_qkv_fwd_params params = {{1e-5f}};
    struct host *x = host_random(1, DIMS(2, 5)), *w = host_random(2, DIMS(3, 5));
    struct host *other = host_random(3, DIMS(4, 5)), *four = host_random(4, DIMS(4));
    struct host *five = host_random(5, DIMS(5));

    ck_refused("fused_qkv_fwd", &params, HOSTS(x, w, other, w, NULL, NULL, NULL, NULL, NULL),
               ATTNCL_ERR_SHAPE, "key_weight is [4, 5], query_weight [3, 5]");
    ck_refused("fused_qkv_fwd", &params, HOSTS(x, w, w, w, NULL, NULL, four, NULL, NULL),
               ATTNCL_ERR_SHAPE, "value_bias is [4], must be [3]");
    ck_refused("fused_qkv_fwd", &params, HOSTS(x, w, w, w, NULL, NULL, NULL, five, NULL),
               ATTNCL_ERR_ARGUMENT, "only one is there");
    ck_refused("fused_qkv_fwd", &params, HOSTS(four, w, w, w, NULL, NULL, NULL, NULL, NULL),
               ATTNCL_ERR_SHAPE, "query_weight takes 5 channels, x has 4");
}

FIXTURE_ONCE(device_up, device_down);
