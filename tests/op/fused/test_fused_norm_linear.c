// SPDX-License-Identifier: MIT
// A linear map with the layer norm in front of it, against the reference of both.
// Reference: tests/ref/layer_norm.c and tests/ref/gemm.c.

#include <math.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "gemm/gemm.h"
#include "ref/ref.h"
#include "support/op_test.h"

struct fused_norm_linear {
    struct host *x, *weight, *bias, *gate, *residual;
    int32_t activation;
};

// What the norm's own roundings (op/test_layer_norm.c) add to element (i, j) of the product: each
// normalised element's, times its weight.  No activation is steeper than 1.13.
static double norm_error(const struct fused_norm_linear *f, const struct host *z, double size,
                         int64_t i, int64_t j)
{
    const int64_t in = f->weight->dim[1];
    const double u = 6e-8, n = (double)in;
    double sum = 0;

    for (int64_t c = 0; c < in; ++c)
        sum += fabs(f->weight->data[j * in + c]) *
               ((8 + n / 256) * u * fabs(z->data[i * in + c]) + u * (4 * log2(n + 1) + 2) * size);
    return 1.13 * sum * (f->gate ? fabs(f->gate->data[i * f->weight->dim[0] + j]) : 1);
}

// Only where rows are few, 16 or in the GPU variant 32, and fit the local memory; elsewhere the op says so.
static void check(const struct fused_norm_linear *f)
{
    const int64_t in = f->weight->dim[1], out = f->weight->dim[0], rows = f->x->count / in;
    const struct fused_norm_linear_fwd_params params = {{f->activation}, {1e-5f}};
    struct host *norm_weight = host_random(31, DIMS(in)), *norm_bias = host_random(32, DIMS(in));
    struct host *z = host_like(f->x), *got = host_new(ATTNCL_F32, DIMS(rows, out));
    struct host *want = host_like(got), *bound = host_like(got);
    const struct gemm g = ref_linear(rows, out, in, f->bias != NULL, f->activation);
    const attncl_status status = run_op(
        "fused_norm_linear_fwd", &params,
        HOSTS(f->x, f->weight, f->bias, f->gate, f->residual, norm_weight, norm_bias), HOSTS(got));

    if (!attncl__gemm_norms(&test_context()->caps, &g)) {
        const struct device_caps *caps = &test_context()->caps;
        const int64_t most = caps->variant == VARIANT_GPU ? 32 : 16;
        const size_t bytes =
            (size_t)(rows * in) * sizeof(float); // in local memory, of which it takes half
        ck_assert(rows > most || bytes > caps->local_bytes / 2 || caps->max_loop_iterations);
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot normalise its rows");
        return;
    }
    ck_ok(status);
    ref_layer_norm_fwd(f->x, norm_weight, norm_bias, (double)params.norm.eps, z);
    ref_gemm(&g,
             &(struct ref_operands){z->data, f->weight->data, f->bias ? f->bias->data : NULL,
                                    f->gate ? f->gate->data : NULL,
                                    f->residual ? f->residual->data : NULL},
             want->data, bound->data);
    const double size = fmax(host_largest(norm_weight), host_largest(norm_bias));
    for (int64_t i = 0; i < got->count; ++i)
        bound->data[i] += norm_error(f, z, size, i / out, i % out);
    ck_terms(got, want, bound, 1, 0, "y");
}

TEST(weights_of_16_bits)
{
    check(
        &(struct fused_norm_linear){.x = host_random(1, DIMS(1, 32)),
                                    .weight = host_stored(host_random(2, DIMS(65, 32)), ATTNCL_F16),
                                    .bias = host_random(3, DIMS(65))});
    check(&(struct fused_norm_linear){.x = host_random(4, DIMS(3, 37)),
                                      .weight =
                                          host_stored(host_random(5, DIMS(20, 37)), ATTNCL_BF16),
                                      .gate = host_random(6, DIMS(3, 20))});
    check(&(struct fused_norm_linear){.x = host_random(4, DIMS(7, 37)),
                                      .weight =
                                          host_stored(host_random(5, DIMS(20, 37)), ATTNCL_BF16),
                                      .activation = ATTNCL_GELU});
}

// Chosen to hit: one row and two, several, all that are allowed; columns of one work-item, and of
// several with a rest; rows of less than a vector, a whole number, a ragged tail.
TEST(matches_the_reference)
{
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(1, 32)),
                                      .weight = host_random(2, DIMS(259, 32)),
                                      .bias = host_random(3, DIMS(259))});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(2, 7)),
                                      .weight = host_random(2, DIMS(17, 7)),
                                      .gate = host_random(3, DIMS(2, 17)),
                                      .activation = ATTNCL_GELU});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(4, 515)),
                                      .weight = host_random(2, DIMS(26, 515)),
                                      .bias = host_random(3, DIMS(26)),
                                      .residual = host_random(4, DIMS(4, 26))});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(5, 67)),
                                      .weight = host_random(2, DIMS(260, 67)),
                                      .bias = host_random(3, DIMS(260)),
                                      .residual = host_random(4, DIMS(5, 260))});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(16, 18)),
                                      .weight = host_random(2, DIMS(33, 18))});
}

// In the GPU variant: one block of rows and several, whole ones and a rest; columns likewise.
TEST(blocks_of_rows)
{
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(8, 700)),
                                      .weight = host_random(2, DIMS(19, 700)),
                                      .bias = host_random(3, DIMS(19)),
                                      .residual = host_random(4, DIMS(8, 19))});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(32, 33)),
                                      .weight = host_random(2, DIMS(64, 33)),
                                      .gate = host_random(3, DIMS(32, 64)),
                                      .activation = ATTNCL_GELU});
    check(
        &(struct fused_norm_linear){.x = host_view(host_random(1, DIMS(21, 40))),
                                    .weight = host_stored(host_random(5, DIMS(37, 40)), ATTNCL_F16),
                                    .residual = host_view(host_random(4, DIMS(21, 37)))});
    check(&(struct fused_norm_linear){.x = host_random(1, DIMS(33, 20)),
                                      .weight = host_random(2, DIMS(7, 20))});
}

TEST(takes_views)
{
    check(&(struct fused_norm_linear){.x = host_view(host_random(1, DIMS(3, 21))),
                                      .weight = host_view(host_random(2, DIMS(19, 21))),
                                      .gate = host_view(host_random(3, DIMS(3, 19))),
                                      .residual = host_view(host_random(4, DIMS(3, 19)))});
}

// The mean is corrected: it does not matter how large it is beside the spread.
TEST(large_means)
{
    struct host *x = host_random(1, DIMS(3, 100));

    for (int64_t i = 0; i < x->count; ++i)
        x->data[i] = (double)(float)(x->data[i] + 1e4);
    check(&(struct fused_norm_linear){.x = x, .weight = host_random(2, DIMS(9, 100))});
}

TEST(refusals)
{
    struct host *x = host_random(1, DIMS(2, 5)), *w = host_random(2, DIMS(3, 5));
    struct host *five = host_random(3, DIMS(5)), *four = host_random(4, DIMS(4));
    struct host *many = host_random(6, DIMS(33, 5)), *y = host_new(ATTNCL_F32, DIMS(33, 3));
    struct fused_norm_linear_fwd_params params = {.norm.eps = 1e-5f};

    ck_refused("fused_norm_linear_fwd", &params, HOSTS(x, w, NULL, NULL, NULL, four, five),
               ATTNCL_ERR_SHAPE, "norm_weight is [4], x has 5 channels");
    ck_refused("fused_norm_linear_fwd", &params, HOSTS(x, w, NULL, NULL, NULL, five, four),
               ATTNCL_ERR_SHAPE, "norm_bias is [4], x has 5 channels");
    ck_refused("fused_norm_linear_fwd", &params, HOSTS(x, w, four, NULL, NULL, five, five),
               ATTNCL_ERR_SHAPE, "bias is [4], weight gives 3");
    ck_fails(run_op("fused_norm_linear_fwd", &params, HOSTS(many, w, NULL, NULL, NULL, five, five),
                    HOSTS(y)), // found when it is launched
             ATTNCL_ERR_UNSUPPORTED, "[33, 5] and [5, 3] cannot normalise its rows");
    params.norm.eps = -1;
    ck_refused("fused_norm_linear_fwd", &params, HOSTS(x, w, NULL, NULL, NULL, five, five),
               ATTNCL_ERR_ARGUMENT, "eps is -1");
}
