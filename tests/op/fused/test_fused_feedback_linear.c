// SPDX-License-Identifier: MIT
// Attention of a feedback transformer's step and the linear map of its result at once, against the reference of both.
// Reference: tests/ref/feedback_attention.c and tests/ref/gemm.c.

#include <math.h>
#include <stdlib.h>

#include "device/context.h"
#include "op/fused/fused_feedback_linear.h"
#include "ref/ref.h"
#include "support/merging_test.h"
#include "support/op_test.h"

struct step_case {
    int64_t limit, batch, n_heads, width, n_places, out;
    double position;
    attncl_dtype cache, dtype; // of the weight; 0: F32
    bool split, bias, gate, residual, views;
    int32_t activation;
};

static struct host *stored(struct host *x, attncl_dtype dtype)
{
    return attncl__is_16_bit(dtype) ? host_stored(x, dtype) : x;
}

static struct host *if_wanted(bool wanted, unsigned seed, int rank, const int64_t *dim)
{
    return wanted ? host_random(seed, rank, dim) : NULL;
}

static bool is_supported(const struct step_case *c)
{
    return device_merges(c->batch, c->out, c->n_heads, c->width, c->limit, c->dtype);
}

static struct ref_feedback random_operands(const struct step_case *c)
{
    return (struct ref_feedback){
        .q = host_random(1, DIMS(c->batch, c->n_heads * c->width)),
        .k = stored(host_random(2, DIMS(c->limit, c->batch, c->n_heads, c->width)), c->cache),
        .v = stored(host_random(3, DIMS(c->limit, c->batch, c->n_heads, c->width)), c->cache),
        .places = host_random(4, DIMS(c->n_places, c->n_heads, c->width)),
        .u = host_random(5, DIMS(c->n_heads, c->width)),
        .place_bias = if_wanted(c->split, 6, DIMS(c->n_places, c->n_heads)),
    };
}

// y [batch, out] of the attention z, and how far it may be off: no activation is steeper than 1.13.
static void map_reference(const struct step_case *c, const struct host *const operands[5],
                          const struct host *z_bound, struct host *want, struct host *bound)
{
    const int64_t channels = c->n_heads * c->width;
    const struct gemm g = ref_linear(c->batch, c->out, channels, c->bias, c->activation);
    const double *data[5];

    for (int i = 0; i < 5; ++i)
        data[i] = operands[i] ? operands[i]->data : NULL;
    ref_gemm(&g, &(struct ref_operands){data[0], data[1], data[2], data[3], data[4]}, want->data,
             bound->data);
    for (int64_t i = 0; i < want->count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < channels; ++j)
            sum +=
                fabs(data[1][i % c->out * channels + j]) * z_bound->data[i / c->out * channels + j];
        bound->data[i] += 1.13 * sum * (data[3] ? fabs(data[3][i]) : 1);
    }
}

static void check(const struct step_case *c)
{
    const struct fused_feedback_linear_fwd_params params = {{c->activation}};
    const struct ref_feedback x = random_operands(c);
    struct host *weight = stored(host_random(7, DIMS(c->out, c->n_heads * c->width)), c->dtype);
    struct host *bias = if_wanted(c->bias, 8, DIMS(c->out));
    struct host *gate = if_wanted(c->gate, 9, DIMS(c->batch, c->out));
    struct host *residual = if_wanted(c->residual, 10, DIMS(c->batch, c->out));
    struct host *z = host_like(x.q), *z_bound = host_like(x.q);
    struct host *got = host_new(ATTNCL_F32, DIMS(c->batch, c->out));
    struct host *want = host_like(got), *bound = host_like(got);
    const int64_t count = c->position < 0                  ? 0
                          : c->position > (double)c->limit ? c->limit
                                                           : (int64_t)c->position;

    for (int64_t i = count * x.q->count; i < x.k->count; ++i)
        x.k->data[i] = x.v->data[i] = NAN; // what is to come is not looked at
    ref_feedback_attention_fwd(&x, count, z, NULL, z_bound);
    if (c->views) {
        struct host *const strided[] = {x.q, x.k, x.v, weight, gate, residual};
        for (size_t i = 0; i < COUNT_OF(strided); ++i)
            if (strided[i])
                strided[i]->as_view = true;
    }
    const attncl_status status =
        run_op("fused_feedback_linear_fwd", &params,
               HOSTS(x.q, x.k, x.v, x.places, x.u, x.place_bias, host_index(c->position), weight,
                     bias, gate, residual),
               HOSTS(got));
    if (!is_supported(c)) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "heads on this device");
        return;
    }
    ck_ok(status);
    const struct host *const operands[5] = {z, weight, bias, gate, residual};
    map_reference(c, operands, z_bound, want, bound);
    ck_terms(got, want, bound, 1, 0, "y");
}

// Every GPU has it for these sizes.
TEST(matches_the_reference)
{
    const struct device_caps *caps = &test_context()->caps;
    const struct step_case plain = {66, 1, 4, 64, 70, 19, 65, .bias = false};

    ck_assert(is_supported(&plain) ==
                  (caps->variant == VARIANT_GPU && !caps->max_loop_iterations) ||
              getenv("TEST_KERNEL_GROUP"));
    check(&(struct step_case){1, 1, 1, 1, 1, 2, 1, .bias = true});
    check(&plain);
    for (int t = 0; t < 10; t += 3)
        check(&(struct step_case){9, 2, 3, 7, 11, 10, t, .views = t % 2 == 0, .split = t > 3,
                                  .bias = true, .gate = t > 4, .residual = true,
                                  .activation = t == 3});
    check(&(struct step_case){140, 4, 2, 33, 140, 21, 130, .views = true, .gate = true});
}

// At the position of the first memory there is none: the map of zeros.
TEST(no_memory_is_zeros)
{
    check(&(struct step_case){70, 2, 2, 8, 70, 6, 0, .bias = true, .residual = true});
    check(&(struct step_case){70, 8, 2, 8, 70, 6, 0, .split = true, .gate = true});
}

// Parts that are full, cut short, and not there yet: one memory decides how many there are.
TEST(parts_of_the_memories_add_up)
{
    static const int positions[] = {1, 32, 33, 64, 65, 300, 1023, 1024};
    for (size_t i = 0; i < COUNT_OF(positions); i += on_simulator() ? 2 : 1) {
        check(&(struct step_case){1024, 1, 2, 12, 1024, 30, positions[i], .bias = true});
        check(&(struct step_case){1024, 2, 1, 125, 1030, 7, positions[i], .split = true});
    }
}

// More rows than one work-group merges: whole blocks and a rest.
TEST(blocks_of_rows)
{
    check(&(struct step_case){40, 5, 2, 24, 40, 18, 40, .bias = true});
    check(&(struct step_case){140, 8, 3, 7, 150, 16, 130, .split = true, .residual = true,
                              .activation = ATTNCL_GELU});
    check(&(struct step_case){9, 21, 1, 9, 9, 10, 8, .gate = true, .views = true});
    check(&(struct step_case){9, 33, 1, 4, 9, 10, 8, .bias = true}); // refused
}

TEST(types_of_16_bits)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    for (size_t i = 0; i < COUNT_OF(dtypes); ++i) {
        check(&(struct step_case){40, 1, 2, 24, 40, 18, 39, .dtype = dtypes[i], .bias = true});
        check(&(struct step_case){140, 2, 2, 8, 140, 18, 130, .cache = dtypes[i],
                                  .dtype = dtypes[i], .split = true});
        check(&(struct step_case){9, 2, 3, 7, 9, 10, 8, .cache = dtypes[i], .residual = true});
    }
}

TEST(a_position_outside_counts_as_the_nearest)
{
    check(&(struct step_case){4, 2, 1, 5, 4, 6, 5, .bias = true});
    check(&(struct step_case){4, 2, 1, 5, 4, 6, 2147483647, .split = true});
    check(&(struct step_case){4, 2, 1, 5, 4, 6, -1, .gate = true});
}

TEST(refusals)
{
    const struct step_case c = {5, 2, 2, 3, 6, 4, .position = 1};
    const struct ref_feedback x = random_operands(&c);
    struct host *at = host_index(1), *weight = host_new(ATTNCL_F32, DIMS(3, 6));
    struct host *wide = host_new(ATTNCL_F32, DIMS(3, 7)), *five = host_new(ATTNCL_F32, DIMS(5));
    struct host *few = host_new(ATTNCL_F32, DIMS(4, 2, 3));
    const struct fused_feedback_linear_fwd_params params = {{0}};
    const char *name = "fused_feedback_linear_fwd";

    ck_refused(name, &params, HOSTS(x.q, x.k, x.v, few, x.u, NULL, at, weight, NULL, NULL, NULL),
               ATTNCL_ERR_SHAPE, "5 memories, key_pos_embeddings has positions for 4");
    ck_refused(name, &params, HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, at, wide, NULL, NULL, NULL),
               ATTNCL_ERR_SHAPE, "weight takes 7 channels, x has 6");
    ck_refused(name, &params,
               HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, at, weight, five, NULL, NULL),
               ATTNCL_ERR_SHAPE, "bias is [5], weight gives 3 channels");
}
