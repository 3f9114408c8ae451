// SPDX-License-Identifier: MIT
// linear and bmm against their reference; launch/test_gemm.c goes through the GEMM's own forms.

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_test.h"

static void compare(const struct gemm *g, const struct ref_operands *x, const struct host *got)
{
    struct host *want = host_like(got), *bound = host_like(got);

    ref_gemm(g, x, want->data, bound->data);
    ck_terms(got, want, bound, 1, 0, "y");
}

struct linear {
    struct host *x, *weight, *bias, *gate, *residual;
    int32_t activation;
};

static void check_linear(const struct linear *f)
{
    const struct host *x = f->x;
    const int64_t in = x->dim[x->rank - 1], out = f->weight->dim[0];
    struct linear_fwd_params params = {f->activation};
    int64_t dim[ATTNCL_MAX_RANK];
    int64_t rows = 1;

    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = out;
    for (int i = 0; i < x->rank - 1; ++i)
        rows *= dim[i];
    struct host *got = host_new(ATTNCL_F32, x->rank, dim);
    ck_ok(run_op("linear_fwd", &params, HOSTS(f->x, f->weight, f->bias, f->gate, f->residual),
                 HOSTS(got)));
    const struct gemm g = ref_linear(rows, out, in, f->bias != NULL, f->activation);
    compare(&g,
            &(struct ref_operands){x->data, f->weight->data, f->bias ? f->bias->data : NULL,
                                   f->gate ? f->gate->data : NULL,
                                   f->residual ? f->residual->data : NULL},
            got);
}

TEST(linear_matches_the_reference)
{
    check_linear(
        &(struct linear){.x = host_random(1, DIMS(1)), .weight = host_random(2, DIMS(1, 1))});
    check_linear(&(struct linear){.x = host_random(3, DIMS(5, 7, 33)),
                                  .weight = host_random(4, DIMS(65, 33)),
                                  .bias = host_random(5, DIMS(65))});
    check_linear(&(struct linear){.x = host_random(6, DIMS(2, 128)),
                                  .weight = host_random(7, DIMS(31, 128)),
                                  .bias = host_random(8, DIMS(31)),
                                  .residual = host_random(9, DIMS(2, 31))});
}

TEST(linear_takes_views)
{
    check_linear(&(struct linear){.x = host_view(host_random(10, DIMS(3, 11, 19))),
                                  .weight = host_random(11, DIMS(23, 19)),
                                  .bias = host_random(12, DIMS(23)),
                                  .gate = host_view(host_random(13, DIMS(3, 11, 23))),
                                  .residual = host_view(host_random(14, DIMS(3, 11, 23))),
                                  .activation = ATTNCL_GELU});
    check_linear(&(struct linear){.x = host_view(host_random(15, DIMS(1, 19))),
                                  .weight = host_view(host_random(16, DIMS(23, 19))),
                                  .gate = host_view(host_random(17, DIMS(1, 23)))});
}

// Few rows and tiles; whole vectors and ragged tails; a
// single column, which other weights take as a row.
static const struct {
    int64_t rows, in, out;
} stored_shapes[] = {{1, 64, 48},  {2, 33, 65},   {4, 16, 3},  {5, 37, 70}, {16, 128, 31},
                     {17, 40, 64}, {70, 129, 67}, {40, 24, 1}, {3, 24, 1},  {3, 0, 5}};

TABLE_TEST(linear_reads_weights_of_16_bits, stored_shapes)
{
    const int64_t rows = stored_shapes[_i].rows, in = stored_shapes[_i].in,
                  out = stored_shapes[_i].out;
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};

    for (int i = 0; i < 2; ++i) {
        struct host *weight = host_stored(host_random(31, DIMS(out, in)), types[i]);
        check_linear(&(struct linear){.x = host_random(30, DIMS(rows, in)), .weight = weight});
        check_linear(&(struct linear){.x = host_view(host_random(32, DIMS(rows, in))),
                                      .weight = host_view(weight),
                                      .bias = host_random(33, DIMS(out)),
                                      .gate = host_random(34, DIMS(rows, out)),
                                      .residual = host_random(35, DIMS(rows, out)),
                                      .activation = ATTNCL_GELU});
    }
}

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

TEST(linear_of_empty_axes)
{
    check_linear(
        &(struct linear){.x = host_random(1, DIMS(0, 5)), .weight = host_random(2, DIMS(3, 5))});
    check_linear(
        &(struct linear){.x = host_random(1, DIMS(4, 5)), .weight = host_random(2, DIMS(0, 5))});
    check_linear(&(struct linear){.x = host_random(1, DIMS(4, 0)),
                                  .weight = host_random(2, DIMS(3, 0)),
                                  .bias = host_random(3, DIMS(3)),
                                  .activation = ATTNCL_TANH});
}

TEST(linear_refusals)
{
    struct host *x = host_random(1, DIMS(2, 5)), *w = host_random(2, DIMS(3, 5));
    struct host *narrow = host_random(3, DIMS(3, 4));
    struct host *ints = host_ints(1, 0, 3, DIMS(2, 5)), *none = host_new(ATTNCL_F32, 0, NULL);
    struct linear_fwd_params params = {0};

    ck_refused("linear_fwd", &params, HOSTS(x, narrow), ATTNCL_ERR_SHAPE,
               "weight takes 4 channels, x has 5");
    ck_refused("linear_fwd", &params, HOSTS(x, w, host_random(1, DIMS(4))), ATTNCL_ERR_SHAPE,
               "bias is [4], weight gives 3");
    ck_refused("linear_fwd", &params, HOSTS(x, w, NULL, x), ATTNCL_ERR_SHAPE,
               "gate is [2, 5], the result is [2, 3]");
    ck_refused("linear_fwd", &params, HOSTS(x, w, NULL, NULL, w), ATTNCL_ERR_SHAPE,
               "residual is [3, 5]");
    ck_refused("linear_fwd", &params, HOSTS(x, host_random(1, DIMS(5))), ATTNCL_ERR_SHAPE,
               "weight is [5]");
    ck_refused("linear_fwd", &params, HOSTS(none, w), ATTNCL_ERR_SHAPE, "one axis");
    ck_refused("linear_fwd", &params, HOSTS(ints, w), ATTNCL_ERR_DTYPE, "x is I32");
    ck_refused("linear_fwd", &params, HOSTS(x, w, host_stored(host_random(4, DIMS(3)), ATTNCL_F16)),
               ATTNCL_ERR_DTYPE, "bias is F16");
    params.activation = 9;
    ck_refused("linear_fwd", &params, HOSTS(x, w), ATTNCL_ERR_ARGUMENT, "activation 9");
}

static void check_bmm(int64_t batch, int64_t n, int64_t m, int64_t p)
{
    struct host *a = host_random(21, DIMS(batch, n, m)), *b = host_random(22, DIMS(batch, m, p));
    struct host *got = host_new(ATTNCL_F32, DIMS(batch, n, p));

    ck_ok(run_op("bmm_fwd", NULL, HOSTS(a, b), HOSTS(got)));
    const struct gemm g = {.batch = batch,
                           .m = n,
                           .n = p,
                           .k = m,
                           .a = {.ld = m, .batch_stride = n * m},
                           .b = {.ld = p, .batch_stride = m * p}};
    compare(&g, &(struct ref_operands){.a = a->data, .b = b->data}, got);
}

TEST(bmm_matches_the_reference)
{
    check_bmm(1, 1, 1, 1);
    check_bmm(5, 3, 17, 70);
    check_bmm(3, 19, 7, 1);
    check_bmm(2, 65, 33, 129);
    check_bmm(2, 9, 0, 3);
    check_bmm(0, 9, 4, 3);
}

TEST(bmm_refusals)
{
    struct host *a = host_random(1, DIMS(2, 3, 4));

    ck_refused("bmm_fwd", NULL, HOSTS(a, host_random(1, DIMS(3, 4, 5))), ATTNCL_ERR_SHAPE,
               "a has a batch of 2, b of 3");
    ck_refused("bmm_fwd", NULL, HOSTS(a, host_random(1, DIMS(2, 3, 5))), ATTNCL_ERR_SHAPE,
               "a has 4 columns, b 3 rows");
    ck_refused("bmm_fwd", NULL, HOSTS(a, host_random(1, DIMS(4, 5))), ATTNCL_ERR_SHAPE,
               "b is [4, 5]");
    ck_refused("bmm_fwd", NULL, HOSTS(a, host_ints(1, 0, 9, DIMS(2, 4, 5))), ATTNCL_ERR_DTYPE,
               "b is I32");
}
