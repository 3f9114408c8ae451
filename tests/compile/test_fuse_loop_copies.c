// SPDX-License-Identifier: MIT
// What an iteration of a loop reads and leaves, eight at a time as one node: in order, of one length, and none that reads
// another's result; the same numbers.

#include "attncl/ops.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "op/fused/fused.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROUNDS = 4, C = 5, MAX_COPIES = 20 };

// fused: how many nodes they become; left: rows, stacks and sums that stay.
static const struct form {
    const char *name;
    int n_rows, n_stacks, n_sums;
    bool other_length; // the second half of the rows have one more
    bool sums_of_rows; // in place of sums of what is computed
    bool other_first;  // the second half of the sums start in another iteration
    int fused, left;
} forms[] = {
    {"one of each", 1, 1, 0, .left = 2},
    {"a stack and a sum", 1, 1, 1, .fused = 1, .left = 1},
    {"two rows", 2, 0, 1, .fused = 1, .left = 1},
    {"a full node", 8, 8, 0, .fused = 2},
    {"a full node and one that is left", 9, 9, 0, .fused = 2, .left = 2},
    {"full nodes and a rest", 18, 10, 9, .fused = 6},
    {"rows of two lengths", 6, 1, 0, .other_length = true, .fused = 2, .left = 1},
    {"sums that start apart", 1, 0, 6, .other_first = true, .fused = 2, .left = 1},
    {"sums of rows", 3, 0, 3, .sums_of_rows = true, .fused = 2},
};

struct built {
    attncl_graph *g;
    attncl_value stack[MAX_COPIES], sum[MAX_COPIES];
};

static float element(int which, int row, int c)
{
    return (float)((which * 7 + row * 3 + c) % 11) - 4.0f;
}

static attncl_value rows_of(attncl_graph *g, int which, int n)
{
    float data[(ROUNDS + 1) * C];
    for (int i = 0; i < n * C; ++i)
        data[i] = element(which, i / C, i % C);
    return attncl_graph_constant(g, ATTNCL_F32, 2, (int64_t[]){n, C}, data);
}

static const char *name_of(const char *kind, int i)
{
    static char name[24];
    snprintf(name, sizeof name, "%s%d", kind, i);
    return name;
}

static void build(const struct form *f, struct built *b)
{
    const struct loop_stack_fwd_params stacks = {ROUNDS};
    attncl_value x[MAX_COPIES], row[MAX_COPIES], twice[MAX_COPIES];

    ck_ok(attncl_graph_create(test_context(), &b->g));
    attncl_graph *g = b->g;
    for (int i = 0; i < f->n_rows; ++i)
        x[i] = rows_of(g, i, ROUNDS + (f->other_length && i >= f->n_rows / 2));
    const attncl_value at = attncl__graph_loop_begin(g, ROUNDS);
    for (int i = 0; i < f->n_rows; ++i)
        row[i] = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x[i], at));
    for (int i = 0; i < f->n_rows; ++i)
        twice[i] = attncl_add(g, row[i], row[i]);
    for (int i = 0; i < f->n_stacks; ++i)
        b->stack[i] =
            attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stacks, IN(twice[i % f->n_rows], at));
    for (int i = 0; i < f->n_sums; ++i) {
        const struct loop_sum_fwd_params sums = {f->other_first && i >= f->n_sums / 2};
        b->sum[i] =
            attncl__graph_add(g, &attncl__op_loop_sum_fwd, &sums,
                              IN(f->sums_of_rows ? row[i % f->n_rows] : twice[i % f->n_rows], at));
    }
    attncl__graph_loop_end(g);
    for (int i = 0; i < f->n_stacks; ++i)
        attncl_graph_output(g, name_of("stack", i), b->stack[i]);
    for (int i = 0; i < f->n_sums; ++i)
        attncl_graph_output(g, name_of("sum", i), b->sum[i]);
    for (int i = 0; i < f->n_rows; ++i) // all rows are wanted
        attncl_graph_output(g, name_of("last", i), twice[i]);
}

static void check_results(const struct form *f, attncl_graph *g)
{
    for (int i = 0; i < f->n_stacks; ++i) {
        const char *name = name_of("stack", i);
        float got[ROUNDS * C];
        ck_ok(attncl_graph_read(g, name, got, sizeof got));
        for (int j = 0; j < ROUNDS * C; ++j)
            ck_assert_msg(got[j] == 2 * element(i % f->n_rows, j / C, j % C), "%s, %s[%d] is %g",
                          f->name, name, j, (double)got[j]);
    }
    for (int i = 0; i < f->n_sums; ++i) {
        const int first = f->other_first && i >= f->n_sums / 2;
        const char *name = name_of("sum", i);
        float got[C];
        ck_ok(attncl_graph_read(g, name, got, sizeof got));
        for (int c = 0; c < C; ++c) {
            float want = 0;
            for (int t = first; t < ROUNDS; ++t)
                want += (f->sums_of_rows ? 1 : 2) * element(i % f->n_rows, t, c);
            ck_assert_msg(got[c] == want, "%s, %s[%d] is %g, want %g", f->name, name, c,
                          (double)got[c], (double)want);
        }
    }
}

TABLE_TEST(eight_at_a_time, forms)
{
    const struct form *f = &forms[_i];
    struct built b;

    build(f, &b);
    ck_ok(attncl_graph_compile(b.g, NULL));
    const int fused = count_fused(b.g, &attncl__op_fused_loop_copies_fwd);
    const int left = count_fused(b.g, &attncl__op_loop_row_fwd) +
                     count_fused(b.g, &attncl__op_loop_stack_fwd) +
                     count_fused(b.g, &attncl__op_loop_sum_fwd);
    ck_assert_msg(fused == f->fused && left == f->left, "%s: %d nodes and %d left, want %d and %d",
                  f->name, fused, left, f->fused, f->left);
    for (int run = 0; run < 2; ++run) {
        ck_ok(attncl_graph_run(b.g));
        ck_ok(attncl__graph_check_canaries(b.g));
        check_results(f, b.g);
    }
    attncl_graph_destroy(b.g);
}

FIXTURE_ONCE(device_up, device_down);
