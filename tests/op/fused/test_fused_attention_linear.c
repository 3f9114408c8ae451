// SPDX-License-Identifier: MIT
// A step of attention and the linear map of its result at once, against the reference of both.
// Reference: tests/ref/attention_step.c and tests/ref/gemm.c.

#include <math.h>
#include <stdlib.h>

#include "device/context.h"
#include "op/fused/fused_attention_linear.h"
#include "ref/ref.h"
#include "support/merging_test.h"
#include "support/op_test.h"

struct step_case {
    int64_t limit, batch, n_heads, width, out;
    double position;
    attncl_dtype cache, dtype; // of the weight; 0: F32
    bool bias, gate, residual, views;
    int32_t activation;
};

static struct host *stored(struct host *x, attncl_dtype dtype)
{
    return attncl__is_16_bit(dtype) ? host_stored(x, dtype) : x;
}

// As in test_attention_step.c.
static double step_error(const struct step_case *c, double scale)
{
    return (2 * scale * (double)((c->width + 2) * c->width) * 25 + (double)c->limit + 16) * 6e-8 *
           5;
}

static bool is_supported(const struct step_case *c)
{
    return device_merges(c->batch, c->out, c->n_heads, c->width, c->limit, c->dtype);
}

static void check(const struct step_case *c)
{
    const int64_t channels = c->n_heads * c->width;
    const struct fused_attention_linear_fwd_params params = {
        {(float)(1 / sqrt((double)c->width)), (int32_t)c->n_heads}, {c->activation}};
    struct host *q = host_random(1, DIMS(c->batch, channels)), *k = host_random(2, q->rank, q->dim),
                *v = host_random(3, q->rank, q->dim);
    struct host *keys = stored(host_random(4, DIMS(c->limit, c->batch, channels)), c->cache),
                *values = stored(host_random(5, keys->rank, keys->dim), c->cache);
    struct host *weight = stored(host_random(6, DIMS(c->out, channels)), c->dtype);
    struct host *bias = c->bias ? host_random(7, DIMS(c->out)) : NULL;
    struct host *gate = c->gate ? host_random(8, DIMS(c->batch, c->out)) : NULL;
    struct host *residual = c->residual ? host_random(9, DIMS(c->batch, c->out)) : NULL;
    struct host *z = host_like(q), *got = host_new(ATTNCL_F32, DIMS(c->batch, c->out));
    struct host *want = host_like(got), *bound = host_like(got);
    const int64_t t = c->position < 0                   ? 0
                      : c->position >= (double)c->limit ? c->limit - 1
                                                        : (int64_t)c->position;

    for (int64_t i = (t + 1) * q->count; i < keys->count; ++i)
        keys->data[i] = values->data[i] = NAN; // what is to come is not looked at
    struct host *keys_after = host_copy(keys), *values_after = host_copy(values);
    ref_attention_step_fwd(q, k, v, t, c->n_heads, params.step.scale, keys_after, values_after, z);
    if (c->views) {
        q->as_view = k->as_view = v->as_view = weight->as_view = true;
        if (gate)
            gate->as_view = true;
        if (residual)
            residual->as_view = true;
    }
    const attncl_status status =
        run_op("fused_attention_linear_fwd", &params,
               HOSTS(q, k, v, host_index(c->position), keys, values, weight, bias, gate, residual),
               HOSTS(got));
    if (!is_supported(c)) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "heads on this device");
        return;
    }
    ck_ok(status);
    const struct gemm g = ref_linear(c->batch, c->out, channels, bias != NULL, c->activation);
    ref_gemm(&g,
             &(struct ref_operands){z->data, weight->data, bias ? bias->data : NULL,
                                    gate ? gate->data : NULL, residual ? residual->data : NULL},
             want->data, bound->data);
    // No activation is steeper than 1.13.
    for (int64_t i = 0; i < got->count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < channels; ++j)
            sum += fabs(weight->data[i % c->out * channels + j]);
        bound->data[i] +=
            1.13 * sum * step_error(c, params.step.scale) * (gate ? fabs(gate->data[i]) : 1);
    }
    ck_terms(got, want, bound, 1, 0, "y");
    for (int64_t i = 0; i < (t + 1) * q->count; ++i) {
        ck_assert(keys->data[i] == keys_after->data[i]);
        ck_assert(values->data[i] == values_after->data[i]);
    }
}

// Every GPU has it for these sizes.
TEST(matches_the_reference)
{
    const struct device_caps *caps = &test_context()->caps;
    const struct step_case first = {1, 1, 1, 1, 2, 0, .bias = true};
    const struct step_case plain = {66, 1, 4, 64, 19, 65, .cache = ATTNCL_F32};

    ck_assert(is_supported(&plain) ==
                  (caps->variant == VARIANT_GPU && !caps->max_loop_iterations) ||
              getenv("TEST_KERNEL_GROUP"));
    check(&first);
    check(&plain);
    for (int t = 0; t < 9; t += 2)
        check(&(struct step_case){9, 2, 3, 7, 10, t, .views = t % 4 == 0, .bias = true,
                                  .gate = t > 4, .residual = true, .activation = t == 2});
    check(&(struct step_case){140, 4, 2, 33, 21, 130, .views = true, .gate = true});
}

// Parts that are full, cut short, and not there yet; more of them than work-items.
TEST(parts_of_the_keys_add_up)
{
    static const int positions[] = {0, 32, 33, 300, 1023};
    for (size_t i = 0; i < COUNT_OF(positions); i += on_simulator() ? 2 : 1) {
        check(&(struct step_case){1024, 1, 2, 12, 30, positions[i], .bias = true});
        check(&(struct step_case){1024, 2, 1, 129, 7, positions[i], .views = true});
        check(&(struct step_case){1024, 3, 2, 4, 5, positions[i], .cache = ATTNCL_F32});
    }
}

// More rows than one work-group merges: whole blocks and a rest.
TEST(blocks_of_rows)
{
    check(&(struct step_case){40, 5, 2, 24, 18, 39, .bias = true});
    check(&(struct step_case){140, 8, 3, 7, 16, 130, .residual = true, .activation = ATTNCL_GELU});
    check(&(struct step_case){9, 21, 1, 9, 10, 8, .gate = true, .views = true});
    check(&(struct step_case){40, 32, 2, 8, 18, 30, .cache = ATTNCL_F16, .dtype = ATTNCL_F16});
    check(&(struct step_case){9, 33, 1, 4, 10, 8, .bias = true}); // refused
}

TEST(types_of_16_bits)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    for (size_t i = 0; i < COUNT_OF(dtypes); ++i) {
        check(&(struct step_case){40, 1, 2, 24, 18, 39, .dtype = dtypes[i], .bias = true});
        check(&(struct step_case){140, 2, 2, 8, 18, 130, .cache = dtypes[i], .dtype = dtypes[i]});
        check(&(struct step_case){9, 2, 3, 7, 10, 8, .cache = dtypes[i], .residual = true});
        check(&(struct step_case){9, 2, 3, 7, 10, 8, .dtype = dtypes[i]}); // heads of 7: refused
    }
}

// A score that exceeds all others by far, in any part, decides alone.
TEST(one_score_may_outweigh_the_rest)
{
    const struct fused_attention_linear_fwd_params params = {{1, 1}, {0}};
    const struct step_case c = {200, 1, 1, 4, 2, 199, .cache = ATTNCL_F32};

    for (int64_t at = 0; at < 200 && is_supported(&c); at += 66) {
        struct host *q = host_new(ATTNCL_F32, DIMS(1, 4)), *got = host_new(ATTNCL_F32, DIMS(1, 2));
        struct host *keys = host_new(ATTNCL_F32, DIMS(200, 1, 4));
        struct host *values = host_random(1, DIMS(200, 1, 4));
        struct host *weight = host_new(ATTNCL_F32, DIMS(2, 4));
        q->data[0] = 1000;
        weight->data[1] = weight->data[4 + 3] = 1; // columns 1 and 3
        for (int64_t j = 0; j < 200; ++j)
            keys->data[4 * j] = j == at ? 500 : -500;
        struct host *k = host_new(ATTNCL_F32, DIMS(1, 4)), *v = host_random(2, DIMS(1, 4));
        k->data[0] = -500;
        ck_ok(run_op("fused_attention_linear_fwd", &params,
                     HOSTS(q, k, v, host_index(199), keys, values, weight, NULL, NULL, NULL),
                     HOSTS(got)));
        ck_assert_double_eq(got->data[0], values->data[4 * at + 1]);
        ck_assert_double_eq(got->data[1], values->data[4 * at + 3]);
    }
}

TEST(a_position_outside_counts_as_the_nearest)
{
    check(&(struct step_case){4, 2, 1, 5, 6, 4, .bias = true});
    check(&(struct step_case){4, 2, 1, 5, 6, -1, .gate = true});
}

// What all work-groups read grows with columns, parts and elements.
TEST(large_maps_leave_merging_to_a_launch)
{
    struct device_caps caps = {
        .variant = VARIANT_GPU, .compute_units = 132, .local_bytes = 48 << 10, .max_group = 256};
    struct gemm g = GEMM_OF(1, 1, 1024, 1024, .trans_b = true,
                            .merge = {.n_heads = 16, .n_parts = 17, .limit = 1024});

    ck_assert(attncl__gemm_merges(&caps, &g));
    g.merge.n_parts = 34;
    ck_assert(!attncl__gemm_merges(&caps, &g));
    g.merge.n_parts = 17;
    g.n = 4096;
    ck_assert(!attncl__gemm_merges(&caps, &g));
    g.n = 1024;
    g.m = 4;
    g.merge.n_parts = 8;
    ck_assert(attncl__gemm_merges(&caps, &g));
    g.m = 8; // a block
    ck_assert(attncl__gemm_merges(&caps, &g));
    g.m = 16;
    ck_assert(!attncl__gemm_merges(&caps, &g));
    g.m = 1;
    caps.local_bytes = 1024;
    ck_assert(!attncl__gemm_merges(&caps, &g));
    caps.local_bytes = 48 << 10;
    caps.variant = VARIANT_CPU;
    ck_assert(!attncl__gemm_merges(&caps, &g));
}

TEST(refusals)
{
    struct fused_attention_linear_fwd_params p = {{1, 2}, {0}};
    struct host *q = host_new(ATTNCL_F32, DIMS(2, 6)), *other = host_new(ATTNCL_F32, DIMS(2, 5));
    struct host *at = host_new(ATTNCL_I32, DIMS(1)), *cache = host_new(ATTNCL_F32, DIMS(4, 2, 6));
    struct host *weight = host_new(ATTNCL_F32, DIMS(3, 6)), *five = host_new(ATTNCL_F32, DIMS(5));
    struct host *wide = host_new(ATTNCL_F32, DIMS(3, 7));

    ck_refused("fused_attention_linear_fwd", &p,
               HOSTS(q, other, q, at, cache, cache, weight, NULL, NULL, NULL), ATTNCL_ERR_SHAPE,
               "k is [2, 5], q is [2, 6]");
    ck_refused("fused_attention_linear_fwd", &p,
               HOSTS(q, q, q, at, cache, cache, wide, NULL, NULL, NULL), ATTNCL_ERR_SHAPE,
               "weight takes 7 channels, x has 6");
    ck_refused("fused_attention_linear_fwd", &p,
               HOSTS(q, q, q, at, cache, cache, weight, five, NULL, NULL), ATTNCL_ERR_SHAPE,
               "bias is [5], weight gives 3 channels");
    p.step.n_heads = 4;
    ck_refused("fused_attention_linear_fwd", &p,
               HOSTS(q, q, q, at, cache, cache, weight, NULL, NULL, NULL), ATTNCL_ERR_SHAPE,
               "C = 6 cannot be cut into H = 4 heads");
}
