// SPDX-License-Identifier: MIT
// A layer norm becomes part of the linear maps after it, where all of them can take it over, and
// stays what it is everywhere else.

#include <math.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "gemm/gemm.h"
#include "graph/internal.h"
#include "support/test.h"

enum { ROWS = 2, C = 20, MANY = 17 };
static const float eps = 1e-5f;

struct fixture {
    attncl_graph *g;
    attncl_value x, z, weight, maps[2]; // z = LN(x)
};

static attncl_value filled(attncl_graph *g, int rank, const int64_t *dim, float phase)
{
    float data[C * C];
    for (int i = 0; i < C * C; ++i)
        data[i] = sinf(phase + (float)i);
    return attncl_graph_constant(g, ATTNCL_F32, rank, dim, data);
}

static struct fixture begin(int64_t rows)
{
    static const int64_t square[] = {C, C};
    struct fixture f = {.g = NULL};

    ck_ok(attncl_graph_create(test_context(), &f.g));
    f.x = attncl_graph_input(f.g, "x", ATTNCL_F32, 2, (int64_t[]){rows, C});
    f.weight = filled(f.g, 1, square, 1);
    f.z = attncl_layer_norm(f.g, f.x, f.weight, filled(f.g, 1, square, 2), eps);
    f.maps[0] = filled(f.g, 2, square, 3);
    f.maps[1] = filled(f.g, 2, square, 4);
    return f;
}

static attncl_value map(const struct fixture *f, int i)
{
    return attncl_linear(f->g, f->z, f->maps[i], ATTNCL_NONE_VALUE);
}

static bool device_merges(void)
{
    const struct gemm g = {.batch = 1, .m = ROWS, .n = C, .k = C, .trans_b = true};
    return attncl__gemm_norms(&test_context()->caps, &g);
}

static int count_live(const attncl_graph *g, const struct op_class *cls)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; ++i)
        n += g->nodes[i].live && g->nodes[i].cls == cls;
    return n;
}

static void expect(const attncl_graph *g, int norms, int merged)
{
    ck_assert_int_eq(count_live(g, &attncl__op_layer_norm_fwd), norms);
    ck_assert_int_eq(count_live(g, &attncl__op_fused_norm_linear_fwd), merged);
}

static void run(attncl_graph *g, const char *name, float y[ROWS * C])
{
    float x[ROWS * C];
    for (int i = 0; i < ROWS * C; ++i)
        x[i] = cosf((float)(i * i));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, name, y, sizeof x));
}

static attncl_value sum_of_maps(const struct fixture *f)
{
    return attncl_add(f->g, map(f, 0), map(f, 1));
}

TEST(every_reader_takes_the_norm_over)
{
    float merged[ROWS * C], apart[ROWS * C];
    struct fixture f = begin(ROWS);
    attncl_graph_output(f.g, "y", sum_of_maps(&f));
    ck_ok(attncl_graph_compile(f.g, NULL));
    expect(f.g, device_merges() ? 0 : 1, device_merges() ? 2 : 0);
    run(f.g, "y", merged);
    attncl_graph_destroy(f.g);

    f = begin(ROWS);
    attncl_graph_output(f.g, "y", sum_of_maps(&f));
    attncl_graph_output(f.g, "z", f.z); // somebody wants it
    ck_ok(attncl_graph_compile(f.g, NULL));
    expect(f.g, 1, 0);
    run(f.g, "y", apart);
    for (int i = 0; i < ROWS * C; ++i)
        ck_assert_msg(fabsf(merged[i] - apart[i]) <= 1e-5f, "y[%d] is %g, apart %g", i,
                      (double)merged[i], (double)apart[i]);
    attncl_graph_destroy(f.g);
}

// Compiles with y as output, and finds the norm a node of its own.
static void stays(struct fixture *f, attncl_value y)
{
    attncl_graph_output(f->g, "y", y);
    ck_ok(attncl_graph_compile(f->g, NULL));
    expect(f->g, 1, 0);
    attncl_graph_destroy(f->g);
}

TEST(a_norm_with_other_readers_stays)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    struct fixture f = begin(ROWS);
    stays(&f, attncl_add(f.g, map(&f, 0), f.z));

    f = begin(ROWS);
    desc.residual = f.z;
    stays(&f, attncl_linear_fused(f.g, &desc, f.z, f.maps[0], ATTNCL_NONE_VALUE));

    f = begin(ROWS);
    const attncl_value flat = attncl_reshape(f.g, f.z, 1, (int64_t[]){ROWS * C});
    attncl_graph_output(f.g, "flat", attncl_add(f.g, flat, flat));
    stays(&f, map(&f, 0));
}

TEST(a_norm_of_many_rows_or_of_several_axes_stays)
{
    struct fixture f = begin(MANY);
    stays(&f, map(&f, 0));

    f = begin(ROWS);
    const attncl_value weight = filled(f.g, 2, (int64_t[]){ROWS, C}, 1);
    f.z = attncl_layer_norm(f.g, f.x, weight, weight, eps);
    stays(&f, map(&f, 0));
}

// After what overwrites x, x is no longer what the norm read.
TEST(a_norm_of_state_that_changes_stays)
{
    struct fixture f = begin(ROWS);
    const attncl_value place =
        attncl_graph_constant(f.g, ATTNCL_I32, 1, (int64_t[]){1}, (int32_t[]){0});
    const attncl_value state =
        attncl_graph_state(f.g, "memory", ATTNCL_F32, 5, (int64_t[]){1, ROWS, 1, 1, C});
    const attncl_value x = attncl_reshape(f.g, state, 2, (int64_t[]){ROWS, C});
    const struct feedback_store_fwd_params params = {0};

    f.z = attncl_layer_norm(f.g, x, f.weight, f.weight, eps);
    attncl__graph_add(f.g, &attncl__op_feedback_store_fwd, &params, IN(f.x, place, state));
    stays(&f, map(&f, 0));
}

// The gradient of x and of a map, with or without a plan made before anybody asked for them.
static void gradients(bool plans, float dx[ROWS * C], float dw[C * C])
{
    struct fixture f = begin(ROWS);
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    const attncl_value y = sum_of_maps(&f), dy = filled(f.g, 2, (int64_t[]){ROWS, C}, 5);
    const attncl_value at[2] = {f.x, f.maps[0]};
    attncl_value d[2];

    attncl_graph_output(f.g, "y", y);
    if (plans) {
        ck_ok(attncl_graph_memory(f.g, &report));
        expect(f.g, device_merges() ? 0 : 1, device_merges() ? 2 : 0);
    }
    attncl_graph_gradient(f.g, 1, &y, &dy, 2, at, d);
    attncl_graph_output(f.g, "dx", d[0]);
    attncl_graph_output(f.g, "dw", d[1]);
    ck_ok(attncl_graph_compile(f.g, NULL));
    expect(f.g, 1, 0); // the map's gradient reads it
    run(f.g, "dx", dx);
    ck_ok(attncl_graph_read(f.g, "dw", dw, C * C * sizeof dw[0]));
    attncl_graph_destroy(f.g);
}

TEST(gradients_are_those_of_the_ops_apart)
{
    float dx[2][ROWS * C], dw[2][C * C];
    for (int i = 0; i < 2; ++i)
        gradients(i == 1, dx[i], dw[i]);
    ck_assert_int_eq(memcmp(dx[0], dx[1], sizeof dx[0]), 0);
    ck_assert_int_eq(memcmp(dw[0], dw[1], sizeof dw[0]), 0);
}
