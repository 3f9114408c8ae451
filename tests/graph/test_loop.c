// SPDX-License-Identifier: MIT
// Loops of a graph without canaries, so that memory is reused: values that live across iterations,
// one loop after another, profile, steady state.

#include <string.h>

#include "attncl/profile.h"
#include "base/alloc.h"
#include "compile/lowered.h"
#include "device/context.h"
#include "graph/graph.h"
#include "graph/nodes.h"
#include "support/test.h"

enum { WIDTH = 96, MAX_TRIP_COUNT = 40 };

static attncl_graph *new_graph(attncl_context *ctx)
{
    attncl_graph *g = NULL;
    ck_ok(attncl_graph_create(ctx, &g));
    g->canaries = false; // whatever the environment says
    return g;
}

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

// [iterations, WIDTH]: row t is 2 (x[t] + outside).  `outside` is read early in an iteration and
// nowhere else, the rows of an iteration are done with before the stack takes them: each would
// leave its memory to another were it not for the iterations.
static attncl_value double_rows(attncl_graph *g, attncl_value x, attncl_value outside,
                                int64_t trip_count)
{
    const struct loop_stack_fwd_params params = {(int32_t)trip_count};
    attncl_graph_push_scope(g, "iterations");
    const attncl_value iteration = attncl__graph_loop_begin(g, trip_count, false);
    const attncl_value row = attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, iteration));
    const attncl_value sum = add(g, row, outside);
    const attncl_value twice = add(g, sum, sum);
    const attncl_value stack =
        attncl__graph_add(g, &attncl__op_loop_stack_fwd, &params, IN(twice, iteration));
    attncl__graph_loop_end(g);
    attncl_graph_pop_scope(g);
    return stack;
}

// y = 2 (2 (x + c + c) + c + c) by two loops, compiled.
static attncl_graph *two_loops(attncl_context *ctx, int64_t trip_count)
{
    const int64_t width = WIDTH;
    attncl_graph *g = new_graph(ctx);
    const attncl_value x =
        attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){trip_count, WIDTH});
    const attncl_value c = attncl_graph_input(g, "c", ATTNCL_F32, 1, &width);
    const attncl_value between = double_rows(g, x, add(g, c, c), trip_count);
    attncl_graph_output(g, "y", double_rows(g, between, add(g, c, c), trip_count));
    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

static void run_and_check(attncl_graph *g, int64_t trip_count, float offset)
{
    float x[MAX_TRIP_COUNT * WIDTH], y[MAX_TRIP_COUNT * WIDTH], c[WIDTH];
    const size_t bytes = (size_t)trip_count * WIDTH * sizeof x[0];
    for (int i = 0; i < WIDTH; ++i)
        c[i] = (float)(i % 7);
    for (int i = 0; i < MAX_TRIP_COUNT * WIDTH; ++i)
        x[i] = (float)i + offset;
    ck_ok(attncl_graph_write(g, "x", x, bytes));
    ck_ok(attncl_graph_write(g, "c", c, sizeof c));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, bytes));
    for (int64_t i = 0; i < trip_count * WIDTH; ++i) { // small integers: exact
        const float want = 4 * x[i] + 12 * c[i % WIDTH];
        ck_assert_msg(y[i] == want, "iteration %d, channel %d: %g, expected %g", (int)(i / WIDTH),
                      (int)(i % WIDTH), (double)y[i], (double)want);
    }
}

static const int64_t trip_counts[] = {0, 1, 2, MAX_TRIP_COUNT};

TABLE_TEST(loops_one_after_another, trip_counts)
{
    attncl_graph *g = two_loops(test_context(), trip_counts[_i]);
    for (int run = 0; run < 3; ++run) // every run starts at iteration 0
        run_and_check(g, trip_counts[_i], (float)run);
    attncl_graph_destroy(g);
}

static size_t item_of(const struct lowered *p, attncl_value v)
{
    for (size_t i = 0; i < p->n_items; ++i)
        if (p->items[i].value == v.id)
            return i;
    ck_abort_msg("value %d has no memory", (int)v.id);
    return 0;
}

// `apart` shares no memory with other values that the iterations compute.
static void ck_apart(const struct lowered *p, attncl_value apart)
{
    const struct plan_item *a = &p->items[item_of(p, apart)];
    for (size_t i = 0; i < p->n_items; ++i) {
        const struct plan_item *b = &p->items[i];
        if (a != b && b->value && p->nodes[b->node].loop >= 0)
            ck_assert_msg(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset,
                          "values %d and %d overlap", (int)apart.id, b->value);
    }
}

TEST(values_live_across_iterations_have_their_own_memory)
{
    const int64_t width = WIDTH;
    attncl_graph *g = new_graph(test_context());
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){3, WIDTH});
    const attncl_value c = attncl_graph_input(g, "c", ATTNCL_F32, 1, &width);
    const attncl_value before = add(g, c, c), outside = add(g, before, c);
    const attncl_value stack = double_rows(g, x, outside, 3);
    attncl_graph_output(g, "y", add(g, add(g, stack, x), x));
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    struct lowered p = {0};
    ck_ok(attncl__plan(g, NULL, &p));
    ck_apart(&p, outside);
    ck_apart(&p, stack);
    attncl__lowered_free(&p);
    ck_ok(attncl_graph_memory(g, &report));
    // Reused all the same: rows, of which there are three, take turns, and so do both sums.
    ck_assert_uint_lt(report.arena_bytes, report.unshared_bytes);
    attncl_graph_destroy(g);
}

// Rows of a profile: commands, flop and bytes are those of one run, all iterations included.
TABLE_TEST(a_profile_counts_iterations, trip_counts)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    options.profile = 1;
    ck_ok(attncl_context_create(&options, &ctx));
    attncl_graph *g = two_loops(ctx, trip_counts[_i]);
    const attncl_profile_row *row;
    int n_sums = 0;
    ck_ok(attncl_graph_run_profiled(g));
    ck_ok(attncl_graph_run_profiled(g));
    for (size_t i = 0; (row = attncl_graph_profile_row(g, i)); ++i) {
        const bool inside = strstr(row->scope, "iterations") != NULL;
        const double n = inside ? (double)trip_counts[_i] : 1;
        ck_assert_uint_eq(row->n_commands, (size_t)n);
        ck_assert_uint_eq(row->runs, 2);
        if (strcmp(row->op, "add_fwd") == 0) {
            ck_assert_double_eq(row->flop, n * WIDTH);
            ck_assert_double_eq(row->bytes, n * 3 * WIDTH * sizeof(float));
            n_sums += inside;
        }
    }
    ck_assert_int_eq(n_sums, 4);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(steady_state_makes_nothing)
{
    struct object_counts before, after;
    attncl_graph *g = two_loops(test_context(), 7);
    run_and_check(g, 7, 0);
    ck_ok(attncl_context_finish(test_context()));
    const size_t heap = attncl__alloc_live();
    attncl__objects_count(&before);
    for (int i = 0; i < 30; ++i)
        ck_ok(attncl_graph_run(g));
    ck_ok(attncl_context_finish(test_context()));
    attncl__objects_count(&after);
    // Queues wait for each other by events, which are of a run.
    if (atomic_load(&test_context()->n_side_queues) > 0)
        after.created[OBJECT_EVENT] = before.created[OBJECT_EVENT];
    ck_assert_int_eq(memcmp(&before, &after, sizeof before), 0);
    ck_assert_uint_eq(heap, attncl__alloc_live());
    attncl_graph_destroy(g);
}

TEST(refusals)
{
    static const char *const words[] = {"a loop of -1", "a loop of 2147483648", "a loop in a loop"};
    for (int i = 0; i < 3; ++i) {
        attncl_graph *g = new_graph(test_context());
        attncl__graph_loop_begin(g, i == 0 ? -1 : i == 1 ? (int64_t)INT32_MAX + 1 : 2, false);
        if (i == 2)
            attncl__graph_loop_begin(g, 2, false);
        ck_fails(attncl_graph_status(g), i == 2 ? ATTNCL_ERR_STATE : ATTNCL_ERR_SHAPE, words[i]);
        attncl_graph_destroy(g);
    }
}
