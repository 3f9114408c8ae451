// SPDX-License-Identifier: MIT
// What a loop keeps for the loop that differentiates it.  Numbers are small integers, so that every result is exact.

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "autodiff/loops.h"
#include "compile/program.h"
#include "exec/exec.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { T = 4, B = 2, C = 3 };

// y = (x + x)^2 through a view of the sum, and the first of these nodes.
static attncl_value forward(attncl_graph *g, attncl_value row, int *first)
{
    *first = attncl__loop_saves_first_node(g);
    const attncl_value twice = attncl_add(g, row, row);
    const attncl_value flat = attncl_reshape(g, twice, 1, (const int64_t[]){B * C});
    return attncl_mul(g, flat, flat);
}

static attncl_value row_of(attncl_graph *g, attncl_value x, attncl_value position)
{
    return attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position));
}

// The commands of a graph with the output y, and with dx if it is asked for.
static size_t build_and_run(bool differentiates)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 3, (const int64_t[]){T, B, C});
    const struct loop_stack_fwd_params stack = {T};
    float in[T * B * C], y[T * B * C], dx[T * B * C];
    int first, again;

    attncl_value position = attncl__graph_loop_begin(g, T, false);
    attncl_value row = forward(g, row_of(g, x, position), &first);
    const struct loop_saves saves = attncl__loop_saves_add(g, first, position, T);
    attncl_graph_output(
        g, "y", attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack, IN(row, position)));
    attncl__graph_loop_end(g);
    if (differentiates) {
        struct loop_reads reads;
        struct loop_sums sums;
        const float ones[B * C] = {1, 1, 1, 1, 1, 1};
        const attncl_value dy =
            attncl_graph_constant(g, ATTNCL_F32, 1, (const int64_t[]){B * C}, ones);
        attncl_value d;

        position = attncl__graph_loop_begin(g, T, true);
        const attncl_value x_row = row_of(g, x, position);
        ck_ok(attncl__loop_reads_begin(g, &saves, position, &reads));
        row = forward(g, x_row, &again);
        attncl_graph_gradient(g, 1, &row, &dy, 1, &x_row, &d);
        ck_ok(attncl__loop_reads_replace(g, &reads, again));
        attncl__loop_reads_free(&reads);
        ck_ok(attncl__loop_sums_begin(g, position, T, T - 1, &sums));
        attncl_graph_output(g, "dx", attncl__loop_sums_stack(&sums, d));
        attncl__loop_sums_free(&sums);
        attncl__graph_loop_end(g);
        // Nothing reads what the two nodes compute again.
        for (int n = again; n < g->n_nodes; ++n)
            for (int i = 0; i < g->nodes[n].cls->n_in; ++i) {
                const struct value *v = &g->values[g->values[g->nodes[n].in[i]].base];
                ck_assert(v->kind != VALUE_RESULT || v->node < again || v->node >= again + 2);
            }
    }
    ck_ok(attncl_graph_status(g));
    ck_ok(attncl_graph_compile(g, NULL));
    for (int i = 0; i < T * B * C; ++i)
        in[i] = (float)(i - 10);
    ck_ok(attncl_graph_write(g, "x", in, sizeof in));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, "y", y, sizeof y));
    for (int i = 0; i < T * B * C; ++i)
        ck_assert_float_eq(y[i], 4 * in[i] * in[i]);
    if (differentiates) {
        ck_ok(attncl_graph_read(g, "dx", dx, sizeof dx));
        for (int i = 0; i < T * B * C; ++i)
            ck_assert_float_eq(dx[i], 8 * in[i]);
    }
    const size_t n_commands = attncl__command_list_length(&g->program->command_list);
    attncl_graph_destroy(g);
    return n_commands;
}

// Without gradients nothing is kept: the index, the row, two ops and the stack of y.
TEST(are_kept_for_gradients_alone)
{
    ck_assert_uint_eq(build_and_run(false), 5 * T);
    ck_assert_uint_gt(build_and_run(true), 10 * T);
}
