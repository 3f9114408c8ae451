// SPDX-License-Identifier: MIT
// GEMMs of gradients that add what there is: found where gradients are summed, left alone where a
// product is wanted by itself, and the same numbers.

#include "attncl/gradient.h"
#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "compile/lowered.h"
#include "graph/graph.h"
#include "op/matmul/matmul.h"
#include "ref/ref.h"
#include "support/layer_test.h"

enum { ROWS = 37, IN = 20, OUT = 28, USES = 3 };

// Nodes once the graph is lowered and fused: sums, GEMMs of gradients, and those of them that add.
static void expect(const attncl_graph *g, int sums, int products, int adding)
{
    struct lowered p = {0};
    int n_sums = 0, n_products = 0, n_adding = 0;

    ck_ok(attncl__lower(g, NULL, &p));
    attncl__eliminate_dead(&p);
    ck_ok(attncl__fuse(&p));
    for (int i = 0; i < p.n_nodes; ++i) {
        const struct lowered_node *node = &p.nodes[i];
        const bool is_product = !node->dead && (node->cls == &attncl__op_linear_bwd_input ||
                                                node->cls == &attncl__op_linear_bwd_weight);
        n_sums += !node->dead && node->cls == &attncl__op_add_fwd;
        n_products += is_product;
        n_adding += is_product && node->inputs[LINEAR_BWD_ADDEND] != 0;
    }
    attncl__lowered_free(&p);
    ck_assert_int_eq(n_sums, sums);
    ck_assert_int_eq(n_products, products);
    ck_assert_int_eq(n_adding, adding);
}

// y[i] = x[i] weight[i]^T, of which one side is the same for all; dx or dw: the sum of its gradients.
struct fixture {
    struct rig rig;
    struct host *x[USES], *weight[USES], *dy[USES], *want;
    attncl_value in[USES], maps[USES], y[USES], seeds[USES], gradient;
};

static void add_to(struct host *sum, const struct host *part)
{
    for (int64_t i = 0; i < sum->count; ++i)
        sum->data[i] += part->data[i];
}

static void begin(struct fixture *f, bool weight_is_shared)
{
    struct host *part = NULL;

    rig_open(&f->rig);
    for (int i = 0; i < USES; ++i) {
        const bool is_first = i == 0;
        f->x[i] = !is_first && !weight_is_shared ? f->x[0] : host_random(i, DIMS(ROWS, IN));
        f->weight[i] =
            !is_first && weight_is_shared ? f->weight[0] : host_random(10 + i, DIMS(OUT, IN));
        f->dy[i] = host_random(20 + i, DIMS(ROWS, OUT));
        f->in[i] = f->x[i] == f->x[0] && !is_first ? f->in[0] : rig_in(&f->rig, f->x[i]);
        f->maps[i] =
            f->weight[i] == f->weight[0] && !is_first ? f->maps[0] : rig_in(&f->rig, f->weight[i]);
        f->seeds[i] = rig_in(&f->rig, f->dy[i]);
        f->y[i] = attncl_linear(f->rig.g, f->in[i], f->maps[i], ATTNCL_NONE_VALUE);

        struct host *const like = weight_is_shared ? f->weight[0] : f->x[0];
        if (is_first) {
            f->want = host_like(like);
            part = host_like(like);
        }
        if (weight_is_shared)
            ref_linear_bwd_weight(f->dy[i], f->x[i], part);
        else
            ref_linear_bwd_input(f->dy[i], f->weight[i], part);
        add_to(f->want, part);
    }
    attncl_graph_gradient(f->rig.g, USES, f->y, f->seeds, 1,
                          weight_is_shared ? &f->maps[0] : &f->in[0], &f->gradient);
}

static void ck_gradient(struct fixture *f)
{
    struct host *got = host_like(f->want);

    rig_out(&f->rig, f->gradient, got);
    rig_run_once(&f->rig);
    ck_near(got, f->want, 1e-5, 1e-5);
}

LOOP_TEST(products_after_the_first_add, 0, 2)
{
    struct fixture f;

    begin(&f, _i == 1);
    rig_out(&f.rig, f.gradient, host_like(f.want));
    expect(f.rig.g, 0, USES, USES - 1);
    rig_close(&f.rig);
    begin(&f, _i == 1);
    ck_gradient(&f);
}

// y = x W^T and x itself have gradients: the product adds the other one.
TEST(a_product_adds_what_is_no_product)
{
    struct rig rig;
    struct host *x = host_random(1, DIMS(ROWS, IN)), *w = host_random(2, DIMS(OUT, IN));
    struct host *dy = host_random(3, DIMS(ROWS, OUT)), *dx = host_random(4, DIMS(ROWS, IN));
    struct host *got = host_like(x), *want = host_like(x);

    rig_open(&rig);
    const attncl_value in = rig_in(&rig, x), map = rig_in(&rig, w);
    const attncl_value y[2] = {attncl_linear(rig.g, in, map, ATTNCL_NONE_VALUE),
                               attncl_activate(rig.g, in, ATTNCL_RELU)};
    const attncl_value seeds[2] = {rig_in(&rig, dy), rig_in(&rig, dx)};
    attncl_value gradient;
    attncl_graph_gradient(rig.g, 2, y, seeds, 1, &in, &gradient);
    rig_out(&rig, gradient, got);
    expect(rig.g, 0, 1, 1);
    rig_run_once(&rig);
    ref_linear_bwd_input(dy, w, want);
    for (int64_t i = 0; i < want->count; ++i)
        want->data[i] += x->data[i] > 0 ? dx->data[i] : 0;
    ck_near(got, want, 1e-5, 1e-5);
}

// dx = d w, both addends of the sum (0), or an output (1) or an addend of another sum (2) too.
LOOP_TEST(a_product_with_other_consumers_stays, 0, 3)
{
    struct rig rig;

    rig_open(&rig);
    const attncl_value d = rig_in(&rig, host_random(1, DIMS(ROWS, OUT)));
    const attncl_value w = rig_in(&rig, host_random(2, DIMS(OUT, IN)));
    const attncl_value s = rig_in(&rig, host_random(3, DIMS(ROWS, IN)));
    const attncl_value dx = attncl__graph_add(rig.g, &attncl__op_linear_bwd_input, NULL, IN(d, w));

    rig_out(&rig, attncl_add(rig.g, dx, _i == 0 ? dx : s), host_new(ATTNCL_F32, DIMS(ROWS, IN)));
    if (_i == 1)
        rig_out(&rig, dx, host_new(ATTNCL_F32, DIMS(ROWS, IN)));
    if (_i == 2)
        rig_out(&rig, attncl_add(rig.g, dx, dx), host_new(ATTNCL_F32, DIMS(ROWS, IN)));
    expect(rig.g, _i == 2 ? 2 : 1, 1, 0);
    rig_close(&rig);
}

// Between the product and the sum comes a write to the product's factor (0), or the other addend (1).
LOOP_TEST(a_product_does_not_pass_what_it_needs, 0, 2)
{
    static const int64_t shape[] = {OUT, IN};
    struct rig rig;
    attncl_tensor *weight = NULL;

    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape, ATTNCL_F32, NULL, &weight));
    rig_open(&rig);
    const attncl_value d = rig_in(&rig, host_random(1, DIMS(ROWS, OUT)));
    const attncl_value w = attncl_graph_tensor(rig.g, weight);
    attncl_value s = rig_in(&rig, host_random(3, DIMS(ROWS, IN)));
    const attncl_value dx = attncl__graph_add(rig.g, &attncl__op_linear_bwd_input, NULL, IN(d, w));

    if (_i == 0)
        attncl_accumulate(rig.g, w, rig_in(&rig, host_random(4, DIMS(OUT, IN))));
    else
        s = attncl_activate(rig.g, s, ATTNCL_RELU);
    rig_out(&rig, attncl_add(rig.g, dx, s), host_new(ATTNCL_F32, DIMS(ROWS, IN)));
    expect(rig.g, 1, 1, 0);
    rig_close(&rig);
    attncl_tensor_destroy(weight);
}
