// SPDX-License-Identifier: MIT
// Recording: which nodes have commands and in which order, loops, rows of profiles, failures.

#include "base/alloc.h"
#include "compile/lowered.h"
#include "compile/program.h"
#include "support/test.h"

enum { N = 24 };

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

// The passes up to recording.  The caller frees both.
static attncl_status record(const attncl_graph *g, struct lowered *p, struct program **ret)
{
    *ret = attncl__alloc_zero(sizeof **ret);
    (*ret)->ctx = test_context();
    ck_ok(attncl__plan(g, NULL, p));
    ck_ok(attncl__allocate(p, *ret));
    return attncl__record(p, *ret);
}

static void end(attncl_graph *g, struct lowered *p, struct program *program)
{
    attncl__program_free(program);
    attncl__lowered_free(p);
    attncl_graph_destroy(g);
}

// Nodes 0, 2 and 3 have commands; node 1 is dead, node 4 computes no element.
TEST(live_nodes_in_their_order)
{
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value none = attncl_graph_input(g, "none", ATTNCL_F32, 1, (int64_t[]){0});
    attncl_graph_push_scope(g, "here");
    const attncl_value y = add(g, x, x);
    attncl_graph_pop_scope(g);
    add(g, x, y);
    attncl_graph_output(g, "z", add(g, add(g, y, x), y));
    attncl_graph_output(g, "empty", add(g, none, none));
    ck_ok(record(g, &p, &program));

    static const int nodes[] = {0, 2, 3};
    size_t n_found = 0;
    for (size_t i = 0; i < program->command_list.n_commands; ++i) {
        const struct command *c = &program->command_list.commands[i];
        if (attncl__command_is_sync(c)) // of several queues
            continue;
        ck_assert_uint_lt(n_found, COUNT_OF(nodes));
        ck_assert_int_eq(c->node, nodes[n_found++]);
    }
    ck_assert_uint_eq(n_found, COUNT_OF(nodes));
    ck_assert_str_eq(program->nodes[0].op, "add_fwd");
    ck_assert_str_eq(program->nodes[0].scope, "here");
    ck_assert_str_eq(program->nodes[2].scope, "");
    ck_assert_ptr_null(program->nodes[1].op);
    ck_assert_double_eq(program->nodes[0].flop, N);
    ck_assert_double_eq(program->nodes[0].bytes, 3 * N * sizeof(float));
    ck_assert_uint_eq(program->copy_in.n_commands + program->copy_out.n_commands, 0);
    end(g, &p, program);
}

// Commands of a loop are there once; a run enqueues them, and a profile counts them, for each
// iteration.  A loop without iterations has none.
LOOP_TEST(loops_are_recorded_once, 0, 3)
{
    static const int64_t trip_counts[] = {3, 1, 0};
    const int64_t trip_count = trip_counts[_i];
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    const attncl_value before = add(g, x, x);
    attncl__graph_loop_begin(g, trip_count);
    const attncl_value inside = add(g, before, x);
    attncl__graph_loop_end(g);
    attncl_graph_output(g, "y", add(g, inside, before));
    ck_ok(record(g, &p, &program));

    const struct command_list *list = &program->command_list;
    const size_t in_loop = trip_count ? 2 : 0; // the index and the sum
    ck_assert_uint_eq(list->n_commands, 2 + in_loop);
    ck_assert_uint_eq(attncl__command_list_length(list), 2 + in_loop * (size_t)trip_count);
    if (trip_count > 1) {
        ck_assert_uint_eq(list->commands[2].loop_first, 1);
        ck_assert_uint_eq(list->commands[2].trip_count, 3);
    }
    ck_assert_double_eq(program->nodes[2].flop, (double)(N * trip_count));
    end(g, &p, program);
}

static attncl_status refuse(struct launcher *l, const struct op_call *call)
{
    (void)l;
    (void)call;
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "not on this device");
}

TEST(a_failure_names_scope_and_op)
{
    struct op_class refused = attncl__op_add_fwd;
    attncl_graph *g = test_graph();
    struct lowered p;
    struct program *program;
    refused.launch = refuse;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_push_scope(g, "here");
    attncl_graph_output(g, "y", attncl__graph_add(g, &refused, NULL, IN(x, x)));
    attncl_graph_pop_scope(g);
    ck_fails(record(g, &p, &program), ATTNCL_ERR_UNSUPPORTED, "here: add_fwd: not on this device");
    end(g, &p, program);
}
