// SPDX-License-Identifier: MIT
// Gradients of what every iteration of a loop reads.  Numbers are small integers, so that every sum is exact.

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "autodiff/loops.h"
#include "exec/exec.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { T = 5, B = 3, K = 4, N = 2 };

static int count_in_loop(const attncl_graph *g, const struct op_class *cls)
{
    int n = 0;
    for (int i = g->loops[0].first; i <= g->loops[0].last; ++i)
        n += g->nodes[i].cls == cls;
    return n;
}

static void fill(float *x, int n, int period)
{
    for (int i = 0; i < n; ++i)
        x[i] = (float)(i * i % period - period / 2);
}

// y_t = 2 x_t W^T + b + c for each row of x: the gradients of W and b are those of all rows at once, that of c
// is summed row by row, and that of x is a stack of rows.
TEST(are_those_of_all_rows)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 3, (const int64_t[]){T, B, K});
    const attncl_value dy = attncl_graph_input(g, "dy", ATTNCL_F32, 3, (const int64_t[]){T, B, N});
    const attncl_value w = attncl_graph_input(g, "w", ATTNCL_F32, 2, (const int64_t[]){N, K});
    const attncl_value b = attncl_graph_input(g, "b", ATTNCL_F32, 1, (const int64_t[]){N});
    const attncl_value c = attncl_graph_input(g, "c", ATTNCL_F32, 2, (const int64_t[]){B, N});
    static const char *const names[] = {"dx", "dw", "db", "dc"};
    static float rows[T * B * K], dy_rows[T * B * N], weights[N * K], zeros[B * N];
    struct loop_sums sums;
    struct loop_sum sum[4];
    attncl_value d[4];

    const attncl_value position = attncl__graph_loop_begin(g, T, true);
    const attncl_value row = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position));
    const attncl_value dy_row =
        attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(dy, position));
    const attncl_value y = attncl_add(g, attncl_linear(g, attncl_add(g, row, row), w, b), c);
    attncl_graph_gradient(g, 1, &y, &dy_row, 4, (const attncl_value[]){row, w, b, c}, d);
    ck_ok(attncl__loop_sums_begin(g, position, T, T - 1, &sums));
    sum[0] = (struct loop_sum){.sum = attncl__loop_sums_stack(&sums, d[0])};
    for (int i = 1; i < 4; ++i)
        sum[i] = attncl__loop_sums_add(&sums, d[i]);
    attncl__loop_sums_free(&sums);
    attncl__graph_loop_end(g);
    for (int i = 0; i < 4; ++i)
        attncl_graph_output(g, names[i], attncl__loop_sum_finish(g, &sum[i]));
    // dx and 2 x; the rows of dy are there.
    ck_assert_int_eq(count_in_loop(g, &attncl__op_loop_stack_fwd), 2);
    ck_assert_int_eq(count_in_loop(g, &attncl__op_loop_sum_fwd), 1);

    fill(rows, T * B * K, 7);
    fill(dy_rows, T * B * N, 5);
    fill(weights, N * K, 3);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", rows, sizeof rows));
    ck_ok(attncl_graph_write(g, "dy", dy_rows, sizeof dy_rows));
    ck_ok(attncl_graph_write(g, "w", weights, sizeof weights));
    ck_ok(attncl_graph_write(g, "b", zeros, N * sizeof zeros[0]));
    ck_ok(attncl_graph_write(g, "c", zeros, sizeof zeros));
    for (int run = 0; run < 2; ++run) {
        float dx[T * B * K], dw[N * K], db[N], dc[B * N];
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl__graph_check_canaries(g));
        ck_ok(attncl_graph_read(g, "dx", dx, sizeof dx));
        ck_ok(attncl_graph_read(g, "dw", dw, sizeof dw));
        ck_ok(attncl_graph_read(g, "db", db, sizeof db));
        ck_ok(attncl_graph_read(g, "dc", dc, sizeof dc));
        for (int n = 0; n < N; ++n) {
            float bias = 0;
            for (int i = 0; i < T * B; ++i)
                bias += dy_rows[i * N + n];
            ck_assert_float_eq(db[n], bias);
            for (int k = 0; k < K; ++k) {
                float want = 0;
                for (int i = 0; i < T * B; ++i)
                    want += 2 * dy_rows[i * N + n] * rows[i * K + k];
                ck_assert_float_eq(dw[n * K + k], want);
            }
            for (int i = 0; i < B; ++i) {
                float want = 0;
                for (int t = 0; t < T; ++t)
                    want += dy_rows[(t * B + i) * N + n];
                ck_assert_float_eq(dc[i * N + n], want);
            }
        }
        for (int i = 0; i < T * B * K; ++i) {
            float want = 0;
            for (int n = 0; n < N; ++n)
                want += 2 * dy_rows[i / K * N + n] * weights[n * K + i % K];
            ck_assert_float_eq(dx[i], want);
        }
    }
    attncl_graph_destroy(g);
}
