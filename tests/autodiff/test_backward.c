// SPDX-License-Identifier: MIT
// Reverse mode: sums over uses, gradients of views, what is left out, what is refused.  Numbers are
// small integers, so that every result is exact.

#include <stdio.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "base/alloc.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { N = 12 };
static const int64_t shape34[] = {3, 4}, shape43[] = {4, 3}, shape32[] = {3, 2};
static const float ramp[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static attncl_value input(attncl_graph *g, const char *name, const int64_t dim[2])
{
    return attncl_graph_input(g, name, ATTNCL_F32, 2, dim);
}

static attncl_value ones(attncl_graph *g, const int64_t dim[2])
{
    float one[64];
    for (int i = 0; i < 64; ++i)
        one[i] = 1;
    return attncl_graph_constant(g, ATTNCL_F32, 2, dim, one);
}

// Output "dx": the gradient of the sum of y at x.
static void ask(attncl_graph *g, attncl_value y, attncl_value x)
{
    const attncl_shape shape = attncl_graph_shape(g, y);
    const attncl_value dy = ones(g, shape.dim);
    attncl_value dx;
    attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
    attncl_graph_output(g, "dx", dx);
}

// Runs on x = ramp and compares "dx".
static void run_and_check(attncl_graph *g, const float *want, int n)
{
    float got[64];
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", ramp, sizeof ramp));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, "dx", got, (size_t)n * sizeof got[0]));
    for (int i = 0; i < n; ++i)
        ck_assert_msg(got[i] == want[i], "dx[%d] is %g, expected %g", i, (double)got[i],
                      (double)want[i]);
    attncl_graph_destroy(g);
}

TEST(uses_are_summed)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);
    float want[N];

    ask(g, attncl_add(g, attncl_mul(g, x, x), x), x);
    for (int i = 0; i < N; ++i)
        want[i] = 2 * ramp[i] + 1;
    run_and_check(g, want, N);
}

TEST(a_tensor_given_twice_is_one)
{
    attncl_graph *g = test_graph();
    attncl_tensor *w = NULL;
    float want[N];
    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape34, ATTNCL_F32, ramp, &w));
    const attncl_value x = input(g, "x", shape34);
    const attncl_value a = attncl_graph_tensor(g, w), b = attncl_graph_tensor(g, w);

    ask(g, attncl_add(g, attncl_mul(g, x, a), b), b);
    for (int i = 0; i < N; ++i)
        want[i] = ramp[i] + 1;
    run_and_check(g, want, N);
    attncl_tensor_destroy(w);
}

TEST(halves)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);
    const attncl_value a = attncl_slice(g, x, 1, 0, 2), b = attncl_slice(g, x, 1, 2, 4);

    ask(g, attncl_mul(g, a, b), x);
    run_and_check(g, (const float[]){2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9}, N);
}

TEST(a_slice_a_permutation_and_a_reshape)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);
    const attncl_value w = attncl_graph_constant(g, ATTNCL_F32, 2, shape43, ramp);
    const attncl_value turned = attncl_permute(g, x, (const int[]){1, 0});
    const attncl_value middle = attncl_slice(g, x, 0, 1, 2);
    const attncl_value flat = attncl_reshape(g, x, 2, shape43);

    attncl_value y = attncl_add(g, attncl_mul(g, turned, w), attncl_mul(g, flat, w));
    const attncl_value row = attncl_reshape(g, middle, 2, (const int64_t[]){1, 4});
    y = attncl_concat(g, 2,
                      (const attncl_value[]){attncl_permute(g, row, (const int[]){1, 0}),
                                             attncl_reshape(g, y, 2, shape43)},
                      1);
    ask(g, y, x);
    float want[N];
    for (int i = 0; i < N; ++i) // w transposed, w, and the middle row
        want[i] = ramp[i % 4 * 3 + i / 4] + ramp[i] + (float)(i / 4 == 1);
    run_and_check(g, want, N);
}

// More slices than are placed at a time, whose hashes collide; two of them overlap.
TEST(many_slices)
{
    enum { SLICES = 12, STEP = 64 };
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", (const int64_t[]){SLICES * STEP, 1});
    attncl_value y[SLICES + 1], dx, dy[SLICES + 1];
    float data[SLICES * STEP] = {0}, want[SLICES * STEP] = {0};

    for (int i = 0; i < SLICES; ++i) {
        data[i * STEP] = ramp[i];
        want[i * STEP] = 2 * ramp[i] * ramp[i];
        y[i] = attncl_slice(g, x, 0, i * STEP, i * STEP + 1);
        dy[i] = attncl_graph_constant(g, ATTNCL_F32, 2, (const int64_t[]){1, 1}, &ramp[i]);
        y[i] = attncl_mul(g, y[i], y[i]);
    }
    y[SLICES] = attncl_slice(g, x, 0, 4 * STEP, 4 * STEP + 2);
    want[4 * STEP] += 1;
    want[4 * STEP + 1] += 1;
    dy[SLICES] = ones(g, (const int64_t[]){2, 1});
    attncl_graph_gradient(g, SLICES + 1, y, dy, 1, &x, &dx);
    attncl_graph_output(g, "dx", dx);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", data, sizeof data));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "dx", data, sizeof data));
    ck_assert_mem_eq(data, want, sizeof data);
    attncl_graph_destroy(g);
}

// Of other inputs, and with other strides: many more than places in the table of hashes.
TEST(slices_from_the_same_place)
{
    enum { SLICES = 24 };
    attncl_graph *g = test_graph();
    attncl_value x[SLICES + 1], y[2 * SLICES], dy[2 * SLICES], dx[SLICES + 1];
    float got[2 * SLICES] = {0}, want[2 * SLICES] = {0};
    char name[16];

    x[SLICES] = input(g, "x", (const int64_t[]){2 * SLICES, 1});
    for (int i = 0; i < SLICES; ++i) {
        snprintf(name, sizeof name, "x%d", i);
        x[i] = input(g, name, shape32);
        y[i] = attncl_slice(g, x[i], 0, 0, 1);
        const attncl_value rows = attncl_slice(g, x[SLICES], 0, 0, 2 * (i + 1));
        const int64_t dim[] = {2, i + 1};
        y[SLICES + i] = attncl_slice(g, attncl_reshape(g, rows, 2, dim), 1, 0, 1);
        const float number[] = {(float)i, (float)i};
        const attncl_shape shape[] = {attncl_graph_shape(g, y[i]),
                                      attncl_graph_shape(g, y[SLICES + i])};
        dy[i] = attncl_graph_constant(g, ATTNCL_F32, 2, shape[0].dim, number);
        dy[SLICES + i] = attncl_graph_constant(g, ATTNCL_F32, 2, shape[1].dim, number);
        want[0] += (float)i;
        want[i + 1] += (float)i;
    }
    attncl_graph_gradient(g, 2 * SLICES, y, dy, SLICES + 1, x, dx);
    for (int i = 0; i <= SLICES; ++i) {
        snprintf(name, sizeof name, "dx%d", i);
        attncl_graph_output(g, name, dx[i]);
    }
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, name, got, sizeof got));
    ck_assert_mem_eq(got, want, sizeof got);
    for (int i = 0; i < SLICES; ++i) {
        snprintf(name, sizeof name, "dx%d", i);
        ck_ok(attncl_graph_read(g, name, got, 6 * sizeof got[0]));
        ck_assert_msg(got[0] == (float)i && got[1] == (float)i && got[2] == 0, "of x%d", i);
    }
    attncl_graph_destroy(g);
}

TEST(of_a_view)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);

    ask(g, attncl_mul(g, x, x), attncl_slice(g, x, 1, 1, 3));
    run_and_check(g, (const float[]){2, 4, 10, 12, 18, 20}, 6);
}

TEST(zeros_where_nothing_flows)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34), other = input(g, "other", shape32);
    static const float none[6];

    ask(g, attncl_mul(g, x, x), other);
    run_and_check(g, none, 6);
}

TEST(a_scalar_needs_no_dy)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);
    attncl_value y[2], dx;

    y[0] = attncl_slice(g, attncl_slice(g, x, 0, 1, 2), 1, 2, 3);
    y[1] = attncl_mul(g, y[0], y[0]);
    attncl_graph_gradient(g, 2, y, NULL, 1, &x, &dx);
    attncl_graph_output(g, "dx", dx);
    run_and_check(g, (const float[]){0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0}, N);
}

TEST(unneeded_gradients_are_left_out)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34), w = input(g, "w", shape34);
    const attncl_value y = attncl_mul(g, attncl_mul(g, w, w), x), dy = ones(g, shape34);
    attncl_value dx;

    const int before = g->n_nodes;
    attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
    ck_ok(attncl_graph_status(g));
    ck_assert_int_eq(g->n_nodes, before + 1);

    // Nor does a gradient in a loop go on before it.
    attncl__graph_loop_begin(g, 2, false);
    const int in_loop = g->n_nodes;
    const attncl_value z = attncl_mul(g, y, x);
    attncl_graph_gradient(g, 1, &z, &dy, 1, &x, &dx);
    attncl__graph_loop_end(g);
    ck_ok(attncl_graph_status(g));
    ck_assert_int_eq(g->n_nodes, in_loop + 2);
    attncl_graph_destroy(g);
}

// No recursion: the depth of the graph is not the depth of the stack.
TEST(a_deep_graph)
{
    enum { DEPTH = 30000 };
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34), dy = ones(g, shape34);
    attncl_value y = x, dx;

    for (int i = 0; i < DEPTH; ++i)
        y = attncl_mul(g, y, x);
    attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
    ck_ok(attncl_graph_status(g));
    ck_assert_int_ge(g->n_nodes, 3 * DEPTH);
    attncl_graph_destroy(g);
}

TEST(an_op_without_gradient_is_named)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34);
    attncl_value dx;

    attncl_graph_push_scope(g, "decoder");
    const attncl_value tokens = attncl_argmax(g, x);
    attncl_graph_pop_scope(g);
    const attncl_value y = attncl_embedding(g, tokens, x, 1);
    const attncl_value dy = ones(g, shape34);
    attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
    ck_assert_int_eq(dx.id, 0);
    ck_fails(attncl_graph_compile(g, NULL), ATTNCL_ERR_UNSUPPORTED,
             "decoder: argmax has no gradient");
    attncl_graph_destroy(g);
}

TEST(a_loop_that_ended_has_no_gradient)
{
    attncl_graph *g = test_graph();
    const attncl_value x = input(g, "x", shape34), dy = ones(g, shape34);
    attncl_value dx;

    attncl__graph_loop_begin(g, 2, false);
    const attncl_value y = attncl_add(g, x, x);
    attncl__graph_loop_end(g);
    attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_UNSUPPORTED, "add has no gradient in a loop");
    attncl_graph_destroy(g);
}

TEST(refusals)
{
    attncl_graph *g = test_graph();
    attncl_value x = input(g, "x", shape34), dx;
    const attncl_value narrow = ones(g, shape32);

    attncl_graph_gradient(g, 1, &x, &narrow, 1, &x, &dx);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_SHAPE, "dy 0 is [3, 2], its y is [3, 4]");
    attncl_graph_destroy(g);

    g = test_graph();
    x = input(g, "x", shape34);
    attncl_graph_gradient(g, 1, &x, NULL, 1, &x, &dx);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_SHAPE, "without a dy");
    attncl_graph_destroy(g);

    g = test_graph();
    x = attncl_graph_input(g, "x", ATTNCL_I32, 2, shape34);
    attncl_graph_gradient(g, 1, &x, NULL, 1, &x, &dx);
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_DTYPE, "I32");
    attncl_graph_destroy(g);

    for (int i = 0; i < 3; ++i) {
        g = test_graph();
        x = dx = input(g, "x", shape34);
        attncl_graph_gradient(g, 1, i == 0 ? NULL : &x, NULL, 1, i == 1 ? NULL : &x,
                              i == 2 ? NULL : &dx);
        ck_fails(attncl_graph_status(g), ATTNCL_ERR_ARGUMENT, "y, x or dx is NULL");
        ck_assert_int_eq(dx.id == 0, i < 2);
        attncl_graph_destroy(g);
    }
}
