// SPDX-License-Identifier: MIT
// Dropout against its reference (tests/ref/dropout.c), which is given the same bits.

#include "attncl/dropout.h"
#include "attncl/gradient.h"
#include "ref/ref.h"
#include "support/layer_test.h"
#include "support/op_test.h"
#include <math.h>

static const double roundings = 1.8e-7; // of the factor, the product and the sum

static struct host *host_step(uint32_t step)
{
    const double value = (double)(int32_t)step;
    return host_with(ATTNCL_I32, &value, 0, NULL);
}

// Entries [begin, begin + n) of an axis.
static struct host *cut(const struct host *x, int axis, int64_t begin, int64_t n)
{
    int64_t dim[8], inner = 1;

    for (int i = 0; i < x->rank; ++i)
        dim[i] = i == axis ? n : x->dim[i];
    for (int i = axis + 1; i < x->rank; ++i)
        inner *= x->dim[i];
    struct host *part = host_new(ATTNCL_F32, x->rank, dim);
    for (int64_t i = 0; i < part->count; ++i)
        part->data[i] = x->data[(i / (n * inner) * x->dim[axis] + begin) * inner + i % (n * inner)];
    return part;
}

static void check_part(struct host *x, int axis, int64_t begin, int64_t n, int64_t position)
{
    const struct ref_dropout d = {0.4, 9, 1, 3};
    const struct dropout_fwd_params params = {d.p, d.seed, d.site, axis, begin, x->dim[axis]};
    struct host *whole = host_like(x), *part = cut(x, axis, begin, n);
    struct host *at = position >= 0 ? host_index((double)position) : NULL;

    ref_dropout_fwd(&d, x, position >= 0 ? position : 0, NULL, whole);
    ck_op("dropout_fwd", &params, HOSTS(part, host_step(d.step), at),
          HOSTS(cut(whole, axis, begin, n)), roundings, 0);
}

TEST(part_of_a_batch_has_that_part_of_its_mask)
{
    for (int64_t width = 1; width < 10; ++width) {
        check_part(host_random(1, DIMS(5, 4, width)), 0, 1, 3, -1);
        check_part(host_random(2, DIMS(5, 4, width)), 1, 1, 2, -1);
        check_part(host_random(3, DIMS(4, width)), 0, 3, 1, 6);
    }
    check_part(host_random(4, DIMS(6, 7, 3, 64)), 1, 2, 5, -1);
    check_part(host_random(5, DIMS(3, 5, 300)), 1, 4, 1, 2);
    check_part(host_random(6, DIMS(3, 5, 64)), 1, 0, 5, -1); // all of it
}

// Ones through the op.
static struct host *mask(int64_t count, struct ref_dropout d)
{
    const struct dropout_fwd_params params = {.p = d.p, .seed = d.seed, .site = d.site};
    struct host *x = host_new(ATTNCL_F32, DIMS(count)), *y = host_like(x);

    for (int64_t i = 0; i < count; ++i)
        x->data[i] = 1;
    ck_ok(run_op("dropout_fwd", &params, HOSTS(x, host_step(d.step), NULL, NULL), HOSTS(y)));
    return y;
}

static double share_kept(const struct host *a, const struct host *b)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->count; ++i)
        n += a->data[i] != 0 && b->data[i] != 0;
    return (double)n / (double)a->count;
}

// Within five standard deviations of what independent draws give.
static void ck_share(double got, double want, int64_t count)
{
    ck_assert_double_lt(fabs(got - want), 5 * sqrt(want * (1 - want) / (double)count));
}

TEST(sites_steps_and_seeds_are_independent)
{
    const int64_t n = on_simulator() ? 2000 : 40000;
    const struct ref_dropout d = {0.4, 5, 1, 1};
    struct host *a = mask(n, d);
    struct ref_dropout others[] = {d, d, d, d};

    ck_share(share_kept(a, a), 0.6, n);
    others[0].site = 2;
    others[1].step = 2;
    others[2].seed = 6;
    others[3].seed = 5 + (1ull << 32);
    for (size_t i = 0; i < COUNT_OF(others); ++i)
        ck_share(share_kept(a, mask(n, others[i])), 0.36, n);
}

// One compiled graph takes every step; the gradient is the mask of the same step.
TEST(the_gradient_has_the_mask_of_the_step)
{
    struct host *x = host_random(1, DIMS(3, 9)), *dy = host_random(2, DIMS(3, 9));
    struct host *step = host_step(0), *y = host_like(x), *dx = host_like(x), *dr = host_like(x);
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;
    attncl_value grads[2];
    struct rig rig;

    rig_open(&rig);
    const attncl_value xv = rig_in(&rig, x), dyv = rig_in(&rig, dy);
    desc.step = rig_in(&rig, step);
    desc.p = 0.25;
    desc.seed = 77;
    desc.site = 3;
    desc.residual = rig_in(&rig, dy);
    const attncl_value out = attncl_dropout(rig.g, xv, &desc);
    attncl_graph_gradient(rig.g, 1, &out, &dyv, 2, (attncl_value[]){xv, desc.residual}, grads);
    rig_out(&rig, out, y);
    rig_out(&rig, grads[0], dx);
    rig_out(&rig, grads[1], dr);
    ck_ok(rig_compile(&rig));
    for (uint32_t t = 0; t < 3; ++t) {
        const struct ref_dropout d = {0.25, 77, 3, t};
        struct host *want = host_like(x), *want_dx = host_like(x);
        step->data[0] = t;
        ref_dropout_fwd(&d, x, 0, dy, want);
        ref_dropout_fwd(&d, dy, 0, NULL, want_dx);
        rig_run(&rig);
        ck_near(y, want, roundings, roundings * host_largest(want));
        ck_near(dx, want_dx, roundings, 0);
        ck_near(dr, dy, 0, 0);
    }
    rig_close(&rig);
}

TEST(without_probability_there_is_no_node)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;
    struct rig rig;

    rig_open(&rig);
    const attncl_value x = rig_in(&rig, host_new(ATTNCL_F32, DIMS(4)));
    ck_assert(attncl_dropout(rig.g, x, &desc).id == x.id);
    ck_assert(attncl_dropout(rig.g, x, NULL).id == x.id);
    desc.p = 1.5;
    desc.step = rig_in(&rig, host_step(0));
    attncl_dropout(rig.g, x, &desc);
    ck_rig_fails(&rig, ATTNCL_ERR_ARGUMENT, "dropout p is 1.5, expected 0 to 1");
}
